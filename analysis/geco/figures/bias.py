"""How even the classes of the GECO tasks are: bias_C of every task, class and reading against the even share.

Drawn from the table of :func:`geco_ray.geco.audit.bias.bias_of_tasks` as a data frame; the same numbers give the
same bytes.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.figures import FAINT, GREY, INK, Picture, empty, grid_of_panels, heading, render
from analysis.geco.styles import DATASETS, TITLES

READING_TITLES = {
    "paper": "paper\n(as counted)",
    "paper-V": "paper-V\n(without the terms)",
    "literal": "literal\n(as in the text)",
}
_COLOURS = {"female": "#D55E00", "male": "#0072B2", "neutral": "#009E73"}
_SPARE = ("#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
_BAR = 0.26


def bias_figure(table: pd.DataFrame, scope: str = "train+test") -> Picture:
    """One panel per task: for every reading, how far each class's share of the co-occurrences is from the even share.

    Args:
        table: columns task, scope, reading, label, bias (null if undefined), ideal.
        scope: ``train+test`` or ``train``; other rows are left out.

    Returns:
        The picture ``co_occurrence_bias``; one that says so where the table has no row of the scope.
    """
    part = table[table["scope"] == scope]
    if part.empty:
        return empty("co_occurrence_bias", f"No co-occurrence bias was computed for {scope}.")
    return render("co_occurrence_bias", _alt(part, scope), lambda: _draw(part, scope))


def _alt(part: pd.DataFrame, scope: str) -> str:
    """The largest share in each task, in words."""
    found = []
    titles = TITLES.of("dataset", part["task"])
    for task in DATASETS.in_order(part["task"].unique()):
        rows = part[(part["task"] == task) & part["bias"].notna()]
        if not rows.empty:
            row = rows.sort_values(["bias", "reading", "label"]).iloc[-1]
            found.append(f"{titles[task]}: {row['label']} {100 * row['bias']:.1f} % in reading {row['reading']}")
    return f"Co-occurrence bias of the classes on {scope}; largest shares: " + "; ".join(found) + "."


def _draw(part: pd.DataFrame, scope: str) -> Figure:
    tasks, titles = DATASETS.in_order(part["task"].unique()), TITLES.of("dataset", part["task"])
    readings = [name for name in READING_TITLES if name in set(part["reading"])]
    labels = list(dict.fromkeys(part.sort_values("ideal")["label"]))
    colours = _colours(labels)
    figure, panels = grid_of_panels(len(tasks), 0.6 + 0.85 * len(readings), 1.5)
    distances = (100 * (part["bias"] - part["ideal"])).abs()
    reach = max(0.5, float(distances.max()) if distances.notna().any() else 0.5)
    for axes, task in zip(panels, tasks, strict=False):
        _panel(axes, part[part["task"] == task], readings, labels, colours)
        axes.set_title(titles[task])
        axes.set_xlim(-1.35 * reach, 1.35 * reach)
    heading(
        figure,
        "How even are the classes of the data? Co-occurrence bias in three readings",
        f"bias_C: share of each class in the co-occurrences of gender terms with other words ({scope}). Bars start at "
        "the even share and show the distance from it in percentage points; the numbers are the shares.",
    )
    handles = [Patch(color=colours[label], label=label) for label in labels]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _colours(labels: list[str]) -> dict[str, str]:
    others = [label for label in labels if label not in _COLOURS]
    return _COLOURS | {label: _SPARE[place % len(_SPARE)] for place, label in enumerate(others)}


def _panel(axes: Axes, part: pd.DataFrame, readings: list[str], labels: list[str], colours: dict[str, str]) -> None:
    own = [label for label in labels if label in set(part["label"])]
    for place, reading in enumerate(readings):
        rows: dict[str, Any] = {str(row.label): row for row in part[part["reading"] == reading].itertuples()}
        for number, label in enumerate(own):
            if label in rows:
                _bar(axes, rows[label], place + _BAR * (number - (len(own) - 1) / 2), colours[label])
    axes.axvline(0, color=INK, linewidth=0.9)
    axes.set_yticks(range(len(readings)), [READING_TITLES[name] for name in readings])
    axes.set_ylim(len(readings) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.grid(True, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"percentage points from {100 * float(part['ideal'].iloc[0]):.1f} %")


def _bar(axes: Axes, row: Any, y: float, colour: str) -> None:
    if pd.isna(row.bias):
        axes.annotate("undefined", (0, y), (3, 0), textcoords="offset points", va="center", fontsize=8, color=GREY)
        return
    distance = 100 * (row.bias - row.ideal)
    axes.barh(y, distance, height=_BAR * 0.9, color=colour, linewidth=0)
    right = distance >= 0
    axes.annotate(
        f"{100 * row.bias:.1f} %",
        (distance, y),
        (3 if right else -3, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        va="center",
        fontsize=8,
    )
