"""Figure 2: robustness against distance with its frontier; figure 3: robustness by what changed in the model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.aggregate import highest, lines
from analysis.cfe.labels import with_labels
from analysis.cfe.styles import TITLES
from analysis.cfe.untested import why_nothing_was_tested
from analysis.figures import FAINT, GREY, Picture, empty, grid_of_panels, heading, legend_columns, render
from analysis.styles import Style, Titles
from analysis.views import counted, label_styles, names_of, ordered, title_of
from geco_ray.table import amount


def trade_off_figures(table: pd.DataFrame, titles: Titles = TITLES) -> list[Picture]:
    """One figure per protocol and seeding, a panel per data set; ``table`` from ``cfe.tables.table_6``."""
    if table.empty:
        return []
    pictures = []
    for (protocol, seeding), part in with_labels(table, titles).groupby(["protocol", "seeding"], sort=True):
        name = f"robustness_distance_{protocol}_{seeding}"
        if (part["empirical_robustness"].notna() & part["distance"].notna()).any():
            pictures.append(render(name, _trade_off_alt(part), lambda part=part: _trade_off(part)))  # type: ignore[misc]
        else:
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


def _trade_off_alt(part: pd.DataFrame) -> str:
    known = part[part["empirical_robustness"].notna()]
    best = highest(known, "empirical_robustness")
    return (
        "Empirical robustness against distance for "
        f"{amount(part['method_label'].nunique(), 'counterfactual method', 'counterfactual methods')} on "
        f"{amount(part['dataset'].nunique(), 'data set', 'data sets')}; the most robust is {best.method_label} with "
        f"{100 * best.empirical_robustness:.1f} % at distance {best.distance:.2f}."
    )


def _trade_off(part: pd.DataFrame) -> Figure:
    datasets = names_of(part, "dataset")
    known = part[part["empirical_robustness"].notna() & part["distance"].notna()]
    low = (known["empirical_robustness"] - known["empirical_robustness_sd"].fillna(0)).min()
    floor = max(0.0, 10 * math.floor(10 * low - 0.3))
    figure, panels = grid_of_panels(len(datasets), 3.1, 1.35)
    for axes, dataset in zip(panels, datasets, strict=True):
        _trade_off_panel(axes, part[part["dataset"] == dataset], floor, _styles(part))
        axes.set_title(title_of(part, "dataset", dataset))
    for axes in panels[:: 2 if len(panels) > 1 else 1]:
        axes.set_ylabel("Empirical robustness, %")
    sizes = " or ".join(sorted(set(known["variants"])))
    many = known["empirical_robustness_n"].max() > 1
    heading(
        figure,
        "Which counterfactual survives a changed model, and how far does it ask you to go?",
        f"Up: more of the {sizes} changed models per base model still accept it. Left: less to change. "
        "Dashed: the frontier.\n"
        f"Mark: mean over {counted(known['empirical_robustness_n'], 'base model', 'base models')}"
        + ("; whiskers: ± 1 standard deviation over them." if many else ", so no spread.")
        + " Hollow: methods that do not aim at robustness.",
    )
    _method_legend(figure, part)
    return figure


def _styles(part: pd.DataFrame) -> dict[str, Style]:
    return label_styles(part, "method", "method_label")


def _trade_off_panel(axes: Axes, part: pd.DataFrame, floor: float, styles: dict[str, Style]) -> None:
    known = part[part["empirical_robustness"].notna() & part["distance"].notna()]
    steps = frontier([(row.distance, 100 * row.empirical_robustness) for row in lines(known)])
    if len(steps) > 1:
        xs, ys = zip(*steps, strict=True)
        axes.step(xs, ys, where="post", color=GREY, lw=1.1, ls=(0, (4, 3)), zorder=1)
    for row in lines(known):
        _method_mark(axes, row, styles[row.method_label])
    missing = part[part["empirical_robustness"].isna() | part["distance"].isna()]["method_label"].tolist()
    if missing:
        axes.annotate(
            "no value: " + ", ".join(missing),
            (0.98, 0.03),
            xycoords="axes fraction",
            ha="right",
            fontsize=7,
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


def _method_mark(axes: Axes, row: Any, style: Style) -> None:
    x, y, reach = row.distance, 100 * row.empirical_robustness, 100 * row.empirical_robustness_sd
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
    if pd.notna(share) and share < 0.995:
        axes.annotate(
            f"answers {100 * share:.0f} %", (x, y), (7, -10), textcoords="offset points", fontsize=7,
            color=style.colour, bbox={"facecolor": "white", "alpha": 0.85, "lw": 0, "pad": 0.8}, zorder=1.5,
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


def family_figures(table: pd.DataFrame, titles: Titles = TITLES) -> list[Picture]:
    """One heat map per protocol and seeding, a panel per data set; ``table`` from ``cfe.tables.family_table``."""
    if table.empty:
        return []
    pictures = []
    for (protocol, seeding), part in with_labels(table, titles).groupby(["protocol", "seeding"], sort=True):
        alt = (
            "Empirical robustness in percent of "
            f"{amount(part['method_label'].nunique(), 'counterfactual method', 'counterfactual methods')} by "
            f"{amount(part['family'].nunique(), 'kind', 'kinds')} of model change on "
            f"{amount(part['dataset'].nunique(), 'data set', 'data sets')}."
        )
        name = f"robustness_families_{protocol}_{seeding}"
        pictures.append(render(name, alt, lambda part=part: _families(part)))  # type: ignore[misc]
    return pictures


def _families(part: pd.DataFrame) -> Figure:
    datasets = names_of(part, "dataset")
    families = names_of(part, "family")
    methods = ordered(part, "method", "method_label")
    figure, panels = grid_of_panels(len(datasets), 1.15 + 0.3 * len(methods), 1.35)
    names = [title_of(part, "family", family) for family in families]
    image: Any = None
    for axes, dataset in zip(panels, datasets, strict=True):
        image = _family_panel(axes, part[part["dataset"] == dataset], methods, dict(zip(families, names, strict=True)))
        axes.set_title(title_of(part, "dataset", dataset))
    bar = figure.colorbar(image, ax=panels, location="bottom", shrink=0.4, aspect=40, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label("Empirical robustness, %", fontsize=8.5)
    bar.ax.tick_params(length=0, labelsize=8)
    heading(
        figure,
        "Robust to which model change?",
        "Share of changed models, in percent, that still accept a method's counterfactuals, by what changed.\n"
        f"Mean over {counted(part['empirical_robustness_n'], 'base model', 'base models')}; "
        f"{' or '.join(sorted(set(part['variants'])))} changed models per base model and family. Blank: no result.",
    )
    return figure


def _family_panel(axes: Axes, part: pd.DataFrame, methods: list[str], families: dict[str, str]) -> Any:
    values = part.pivot_table(index="method_label", columns="family", values="empirical_robustness", dropna=False)
    values = 100 * values.reindex(index=methods, columns=list(families)).astype("float64")
    cells = values.to_numpy(dtype="float64")
    edges = [np.arange(size + 1) - 0.5 for size in (len(families), len(methods))]
    image = axes.pcolormesh(
        *edges, np.ma.masked_invalid(cells), cmap="cividis", vmin=0, vmax=100, edgecolors="white", linewidth=1.5
    )
    axes.set_ylim(len(methods) - 0.5, -0.5)
    if len(families) <= 4:  # a few families need no whole page
        axes.set_box_aspect(0.30 * len(methods) / (1.1 * len(families)))
        axes.set_anchor("W")
    for row in range(len(methods)):
        for column in range(len(families)):
            value = cells[row, column]
            if not math.isnan(value):
                ink = "#111111" if value > 55 else "white"
                axes.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=8, color=ink)
    axes.set_yticks(range(len(methods)), methods)
    slanted: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(families)), list(families.values()), fontsize=8, **(slanted if len(families) > 3 else {}))
    axes.tick_params(length=0)
    axes.set_facecolor("white")
    for spine in axes.spines.values():
        spine.set_visible(False)
    return image
