"""Boxes of mass accuracy (GECOBench, Figure 2b): by method with the models beside each other, and the other way round.

A box is the quartiles over correctly classified sentences of all seeds pooled, as in the paper; dots are the medians of
single seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.aggregate import lines
from analysis.figures import BAND, FAINT, INK, Picture, grid_of_panels, heading, legend_columns, render
from analysis.geco.labels import with_labels
from analysis.geco.styles import TITLES
from analysis.styles import Style, Titles
from analysis.views import label_styles, names_of, ordered, title_of

_KEYS = ["dataset", "encoder", "paradigm", "protocol", "method", "settings"]


@dataclass(frozen=True, slots=True)
class Layout:
    """What lies along the axis and what stands beside each other there: kind of name and column of its label."""

    file: str
    along: tuple[str, str]
    beside: tuple[str, str]


METHOD, MODEL = ("method", "method_label"), ("paradigm", "model_label")
LAYOUTS = (Layout("mass_accuracy_by_method", METHOD, MODEL), Layout("mass_accuracy_by_model", MODEL, METHOD))


def box_figures(
    quartiles: pd.DataFrame, per_seed: pd.DataFrame, mass: pd.DataFrame, titles: Titles = TITLES
) -> list[Picture]:
    """Two figures per protocol, a panel per data set.

    Args:
        quartiles: from ``geco.quartiles``. per_seed: from ``metric_by_seed``. mass: from ``metric_table``, for chance.
    """
    known = quartiles[quartiles["median"].notna()] if len(quartiles) else quartiles
    if known.empty:
        return []
    pictures = []
    for protocol, part in with_labels(known, titles).groupby("protocol", sort=True):
        labels = part[[*_KEYS, "method_label", "model_label"]]
        seeds, chance = per_seed.merge(labels, on=_KEYS), mass.merge(labels, on=_KEYS)
        for layout in LAYOUTS:
            alt = (
                f"Boxes of mass accuracy of {part['method_label'].nunique()} attribution methods on "
                f"{part['model_label'].nunique()} models and {part['dataset'].nunique()} datasets."
            )
            draw = partial(_draw, part, seeds, chance, layout)
            pictures.append(render(f"{layout.file}_{protocol}", alt, draw, table="mass_accuracy_quartiles"))
    return pictures


def _draw(part: pd.DataFrame, seeds: pd.DataFrame, chance: pd.DataFrame, layout: Layout) -> Figure:
    datasets = names_of(part, "dataset")
    along, beside = ordered(part, *layout.along), ordered(part, *layout.beside)
    styles = label_styles(part, *layout.beside)
    crowded = len(along) * len(beside) > 12  # half a page is too narrow for that many boxes
    figure, panels = grid_of_panels(len(datasets), 2.6, 1.5, most=1 if crowded else 2)
    for axes, dataset in zip(panels, datasets, strict=True):
        own = part[part["dataset"] == dataset]
        _panel(axes, own, seeds[seeds["dataset"] == dataset], along, beside, styles, layout)
        level = chance.loc[chance["dataset"] == dataset, "chance"].astype("float64").mean()
        if pd.notna(level):
            axes.axhline(level, color=INK, lw=1.0, ls=(0, (4, 3)), zorder=1)
        axes.set_title(title_of(own, "dataset", dataset) + (f" (chance {level:.2f})" if pd.notna(level) else ""))
    heading(
        figure,
        "How much of an explanation falls on the words that decide? Sentence by sentence",
        "Box: quartiles over correctly classified sentences of all seeds pooled, as in the paper; line: median; "
        "whiskers: 95 % of sentences.\nDots: medians of single seeds. Dashed: chance, the share of marked words.",
    )
    handles = [
        Line2D([], [], color=styles[label].colour, marker=styles[label].marker, ms=6, lw=0, label=label)
        for label in beside
    ]
    columns = legend_columns(beside, 6)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=8.5)
    return figure


def _panel(
    axes: Axes, part: pd.DataFrame, seeds: pd.DataFrame, along: list[str], beside: list[str],
    styles: dict[str, Style], layout: Layout,
) -> None:  # fmt: skip
    step = 0.84 / max(len(beside), 1)
    for place in range(0, len(along), 2):
        axes.axvspan(place - 0.5, place + 0.5, color=BAND, zorder=0, lw=0)
    for row in lines(part):
        group, own = getattr(row, layout.along[1]), getattr(row, layout.beside[1])
        at = along.index(group) + (beside.index(own) - (len(beside) - 1) / 2) * step
        same = (seeds["method_label"] == row.method_label) & (seeds["model_label"] == row.model_label)
        _box(axes, row, styles[own], at, 0.8 * step, seeds.loc[same, "median"].dropna().to_numpy(dtype=np.float64))
    slanted: dict[str, Any] = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if len(along) > 3 else {}
    axes.set_xticks(range(len(along)), along, fontsize=8, **slanted)
    axes.set(xlim=(-0.5, len(along) - 0.5), ylim=(0, 1), ylabel="Mass accuracy")
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".50", ".75", "1"])
    axes.grid(axis="y", color=FAINT, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)


def _box(axes: Axes, row: Any, style: Style, at: float, width: float, medians: np.ndarray[Any, Any]) -> None:
    stats = {"med": row.median, "q1": row.q1, "q3": row.q3, "whislo": row.low, "whishi": row.high}
    line: dict[str, Any] = {"color": style.colour, "lw": 1.0}
    axes.bxp(
        [stats], [at], widths=width, showfliers=False, showcaps=False, patch_artist=True, manage_ticks=False,
        boxprops={"facecolor": "white" if style.hollow else style.colour, "edgecolor": style.colour, "alpha": 0.75},
        medianprops={"color": INK, "lw": 1.6}, whiskerprops=line, zorder=2,
    )  # fmt: skip
    if 1 < len(medians) <= 10:
        axes.scatter([at] * len(medians), medians, s=6, color=INK, marker=style.marker, lw=0, zorder=4)
