"""Figure 2 of the counterfactual paper: coverage, empirical and end-to-end robustness of each method, seed by seed."""

from __future__ import annotations

from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.aggregate import lines
from analysis.cfe.labels import with_labels
from analysis.cfe.styles import TITLES
from analysis.figures import BAND, FAINT, INK, Picture, grid_of_panels, heading, render
from analysis.styles import Titles
from analysis.views import counted, names_of, ordered, title_of
from geco_ray.cfe.metrics import METRICS

_SHOWN = {  # column of Table 6: metric, colour, marker, place within a method's band
    "coverage": ("coverage", "#5F5F5F", "|", -0.22),
    "empirical_robustness": ("empirical_robustness", "#0072B2", "o", 0.0),
    "end_to_end": ("end_to_end_robustness", "#C24E00", "D", 0.22),
}
_KEYS = ["dataset", "method", "protocol", "seeding", "settings"]


def decomposition_figures(table: pd.DataFrame, per_seed: pd.DataFrame, titles: Titles = TITLES) -> list[Picture]:
    """One figure per protocol and seeding, a panel per data set.

    Args:
        table: from ``cfe.tables.table_6``. per_seed: from ``table_by_seed``.
    """
    if table.empty or table["coverage"].isna().all():
        return []
    pictures = []
    for (protocol, seeding), part in with_labels(table, titles).groupby(["protocol", "seeding"], sort=True):
        seeds = per_seed.merge(part[[*_KEYS, "method_label"]], on=_KEYS)
        alt = (
            f"Coverage, empirical robustness and end-to-end robustness of {part['method_label'].nunique()} methods on "
            f"{part['dataset'].nunique()} data sets; end-to-end robustness counts what is not answered as lost."
        )
        name = f"coverage_robustness_{protocol}_{seeding}"
        pictures.append(render(name, alt, partial(_draw, part, seeds), table="table_6"))
    return pictures


def _draw(part: pd.DataFrame, seeds: pd.DataFrame) -> Figure:
    datasets, methods = names_of(part, "dataset"), ordered(part, "method", "method_label")
    figure, panels = grid_of_panels(len(datasets), 0.75 + 0.34 * len(methods), 1.3)
    for axes, dataset in zip(panels, datasets, strict=True):
        own, dots = part[part["dataset"] == dataset], seeds[seeds["dataset"] == dataset]
        _panel(axes, own, dots, methods)
        axes.set_title(title_of(part, "dataset", dataset))
    heading(
        figure,
        "What is answered, what of it survives a changed model, and what is left of all requests",
        "Empirical robustness is over answers that the base model accepts; end-to-end robustness over all requests. "
        f"Large: mean over {counted(part['seeds'], 'base model', 'base models')}; small: each of them.",
    )
    handles = [
        Line2D([], [], color=colour, marker=marker, ms=8, mew=2, lw=0, label=METRICS[metric].title)
        for metric, colour, marker, _ in _SHOWN.values()
    ]
    figure.legend(handles=handles, loc="outside lower center", frameon=False, fontsize=8.5, ncols=3)
    return figure


def _panel(axes: Axes, part: pd.DataFrame, dots: pd.DataFrame, methods: list[str]) -> None:
    for place in range(0, len(methods), 2):
        axes.axhspan(place - 0.5, place + 0.5, color=BAND, zorder=0, lw=0)
    for row in lines(part):
        own = dots[dots["method_label"] == row.method_label]
        at = methods.index(row.method_label)
        for column, (_, colour, marker, shift) in _SHOWN.items():
            values = 100 * own[column].astype("float64").dropna()
            if len(values) > 1:
                axes.scatter(values, [at + shift] * len(values), s=7, color=colour, alpha=0.7, lw=0, clip_on=False)
            if pd.notna(mean := getattr(row, column)):
                axes.plot([100 * mean], [at + shift], marker=marker, ms=7, mew=2, color=colour, clip_on=False, zorder=4)
            else:
                axes.annotate("no value", (1, at + shift), fontsize=7, color=INK, va="center")
    axes.set(xlim=(0, 100), ylim=(len(methods) - 0.5, -0.5), xlabel="Percent")
    axes.set_yticks(range(len(methods)), methods)
    axes.grid(axis="x", color=FAINT, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
