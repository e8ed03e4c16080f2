"""Robustness against distance: among base-valid answers, as published (Figure 3), and over all requests beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.aggregate import highest, lines
from analysis.cfe.findings import whole_percent
from analysis.cfe.labels import with_labels
from analysis.cfe.styles import TITLES
from analysis.cfe.untested import why_nothing_was_tested
from analysis.figures import FAINT, GREY, INK, Picture, empty, grid_of_panels, heading, legend_columns, render
from analysis.styles import Style, Titles
from analysis.views import counted, label_styles, names_of, title_of
from geco_ray.table import amount


@dataclass(frozen=True, slots=True)
class Measure:
    """What stands upwards: a column of Table 6, its name in files, on the axis and in the alternative text."""

    column: str
    file: str
    axis: str
    title: str
    up: str


MEASURES = (
    Measure(
        "empirical_robustness", "robustness_distance", "Empirical robustness, %",
        "Which base-valid counterfactual survives a changed model, and how far does it ask you to go?",
        "more of the {sizes} changed models per base model still accept it, of answers that the base model accepts",
    ),
    Measure(
        "end_to_end", "end_to_end_distance", "End-to-end robustness, %",
        "Whom does it help after all? The same, with every request counted",
        "of all requests, answered or not, more are accepted by the {sizes} changed models per base model",
    ),
)  # fmt: skip


def trade_off_figures(table: pd.DataFrame, titles: Titles = TITLES) -> list[Picture]:
    """Two figures per protocol and seeding, a panel per data set; ``table`` from ``cfe.tables.table_6``."""
    if table.empty:
        return []
    pictures = []
    for (protocol, seeding), part in with_labels(table, titles).groupby(["protocol", "seeding"], sort=True):
        for measure in MEASURES:
            name = f"{measure.file}_{protocol}_{seeding}"
            if (part["empirical_robustness"].notna() & part["distance"].notna()).any():
                pictures.append(
                    render(name, _trade_off_alt(part, measure), partial(_trade_off, part, measure), table="table_6")
                )
            elif measure is MEASURES[0]:
                pictures.append(empty(name, " ".join(why_nothing_was_tested(part))))
    return pictures


def frontier(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points, by increasing distance, that raise the best robustness so far."""
    best, kept = -math.inf, []
    for distance, robustness in sorted(points, key=lambda point: (point[0], -point[1])):
        if robustness > best:
            best = robustness
            kept.append((distance, robustness))
    return kept


def _trade_off_alt(part: pd.DataFrame, measure: Measure) -> str:
    best = highest(part[part[measure.column].notna()], measure.column)
    return (
        f"{measure.axis.removesuffix(', %')} against distance for "
        f"{amount(part['method_label'].nunique(), 'counterfactual method', 'counterfactual methods')} on "
        f"{amount(part['dataset'].nunique(), 'data set', 'data sets')}; the highest mean is that of "
        f"{best.method_label} with {100 * getattr(best, measure.column):.1f} % at distance {best.distance:.2f}."
    )


def _trade_off(part: pd.DataFrame, measure: Measure) -> Figure:
    datasets = names_of(part, "dataset")
    known = part[part[measure.column].notna() & part["distance"].notna()]
    low = (known[measure.column] - known[f"{measure.column}_sd"].fillna(0)).min()
    floor = max(0.0, 10 * math.floor(10 * low - 0.3))
    figure, panels = grid_of_panels(len(datasets), 3.1, 1.35)
    for axes, dataset in zip(panels, datasets, strict=True):
        _trade_off_panel(axes, part[part["dataset"] == dataset], floor, _styles(part), measure)
        axes.set_title(title_of(part, "dataset", dataset))
    for axes in panels[:: 2 if len(panels) > 1 else 1]:
        axes.set_ylabel(measure.axis)
    sizes = " or ".join(sorted(set(known["variants"])))
    many = known[f"{measure.column}_n"].max() > 1
    hollow = " Hollow: methods that say they do not aim at robustness." if _any_hollow(part) else ""
    heading(
        figure,
        measure.title,
        f"Up: {measure.up.format(sizes=sizes)}. Left: less to change. Dashed: the frontier.\n"
        f"Mark: mean over {counted(known[f'{measure.column}_n'], 'base model', 'base models')}"
        + ("; whiskers: ± 1 standard deviation over them." if many else ", so no spread.")
        + hollow,
    )
    _method_legend(figure, part)
    return figure


def _any_hollow(part: pd.DataFrame) -> bool:
    return any(style.hollow for style in _styles(part).values())


def _styles(part: pd.DataFrame) -> dict[str, Style]:
    return label_styles(part, "method", "method_label")


def _trade_off_panel(axes: Axes, part: pd.DataFrame, floor: float, styles: dict[str, Style], measure: Measure) -> None:
    known = part[part[measure.column].notna() & part["distance"].notna()]
    steps = frontier([(row.distance, 100 * getattr(row, measure.column)) for row in lines(known)])
    if len(steps) > 1:
        xs, ys = zip(*steps, strict=True)
        axes.step(xs, ys, where="post", color=GREY, lw=1.1, ls=(0, (4, 3)), zorder=1)
    for row in lines(known):
        _method_mark(axes, row, styles[row.method_label], measure.column)
    missing = part[part[measure.column].isna() | part["distance"].isna()]["method_label"].tolist()
    if missing:
        axes.annotate(
            "no value: " + ", ".join(missing),
            (0.98, 0.03),
            xycoords="axes fraction",
            ha="right",
            fontsize=8,
            color=GREY,
        )
    axes.set_xlim(*_distance_range(known))
    axes.set_ylim(floor, 100 + 0.05 * (100 - floor))
    axes.set_xlabel("Distance: mean change per feature, in median absolute deviations")
    axes.grid(color=FAINT, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=5)


def _distance_range(known: pd.DataFrame) -> tuple[float, float | None]:
    """From 0, unless that would leave more than the left half empty."""
    if known.empty:
        return 0.0, None
    sd = known["distance_sd"].fillna(0)
    low, high = float((known["distance"] - sd).min()), float((known["distance"] + sd).max())
    if low <= 0.5 * high:
        return 0.0, 1.12 * high
    room = 0.15 * (high - low) or 0.1 * high
    return low - room, high + room


def _method_mark(axes: Axes, row: Any, style: Style, column: str) -> None:
    x, y, reach = row.distance, 100 * getattr(row, column), 100 * getattr(row, f"{column}_sd")
    for sd, xs, ys in (
        (reach, [x, x], [y - reach, y + reach]),
        (row.distance_sd, [x - row.distance_sd, x + row.distance_sd], [y, y]),
    ):
        if pd.notna(sd):
            axes.plot(xs, ys, color=style.colour, lw=1.2, alpha=0.8, zorder=2, clip_on=False)
    face = "white" if style.hollow else style.colour
    size = 11 if style.marker == "*" else 8
    axes.plot(
        [x], [y], marker=style.marker, ms=size, color=style.colour, mfc=face, mec=style.colour, mew=1.4, zorder=3,
        clip_on=False,
    )  # fmt: skip
    share = row.valid_share
    if pd.notna(share) and share < 0.995 and column == "empirical_robustness":
        axes.annotate(
            f"valid for {whole_percent(share)} % of requests", (x, y), (7, -10), textcoords="offset points", fontsize=8,
            color=INK, bbox={"facecolor": "white", "alpha": 0.85, "lw": 0, "pad": 0.8}, zorder=1.5,
        )  # fmt: skip


def _method_legend(figure: Figure, part: pd.DataFrame) -> None:
    handles = []
    for label, style in _styles(part).items():
        face = "white" if style.hollow else style.colour
        handles.append(
            Line2D([], [], color=style.colour, marker=style.marker, mfc=face, mec=style.colour, ms=7, lw=0, label=label)
        )
    handles.append(Line2D([], [], color=GREY, lw=1.1, ls=(0, (4, 3)), label="frontier"))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        frameon=False,
        fontsize=8.5,
        ncols=legend_columns([str(handle.get_label()) for handle in handles], 5),
    )
