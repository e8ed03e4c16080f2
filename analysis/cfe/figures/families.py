"""Figure 1 of the counterfactual paper: robustness by what changed in the model, a heat map per data set."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis.cfe.labels import with_labels
from analysis.cfe.styles import TITLES
from analysis.figures import INK, Picture, grid_of_panels, heading, ink_on, render
from analysis.styles import Titles
from analysis.views import counted, names_of, ordered, title_of
from geco_ray.table import amount


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
        scopes = {name: set(titles.kind("method").profile(name).scope) for name in set(part["method"])}
        pictures.append(render(name, alt, partial(_families, part, scopes), table="families"))
    return pictures


def _families(part: pd.DataFrame, scopes: Mapping[str, Collection[str]]) -> Figure:
    datasets = names_of(part, "dataset")
    families = names_of(part, "family")
    methods = ordered(part, "method", "method_label")
    figure, panels = grid_of_panels(len(datasets), 1.15 + 0.3 * len(methods), 1.35)
    names = [title_of(part, "family", family) for family in families]
    image: Any = None
    for axes, dataset in zip(panels, datasets, strict=True):
        own = part[part["dataset"] == dataset]
        image = _family_panel(axes, own, methods, dict(zip(families, names, strict=True)))
        _mark_scopes(axes, own, methods, families, scopes)
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
        f"{' or '.join(sorted(set(part['variants'])))} changed models per base model and family. Blank: no result."
        + (" Framed: changes that the method's own assumption is about." if any(scopes.values()) else ""),
    )
    return figure


def _mark_scopes(
    axes: Axes, part: pd.DataFrame, methods: list[str], families: list[str], scopes: Mapping[str, Collection[str]]
) -> None:
    """A frame around the cells whose change is what the method assumes."""
    names = dict(zip(part["method_label"], part["method"], strict=True))
    for row, label in enumerate(methods):
        for column, family in enumerate(families):
            if label in names and family in scopes[names[label]]:
                box = Rectangle((column - 0.44, row - 0.44), 0.88, 0.88, fill=False, ec="white", lw=3.2)
                axes.add_patch(box)
                axes.add_patch(Rectangle((column - 0.44, row - 0.44), 0.88, 0.88, fill=False, ec=INK, lw=1.6))


def percent_text(value: float) -> str:
    """A percentage as a whole number, but 100 for 100 alone and 0 for 0 alone: 99.6 is ``99.6``, 99.97 is ``99.9``."""
    whole = f"{value:.0f}"
    if whole == "100" and value < 100:
        return f"{math.floor(10 * value) / 10:.1f}"
    return f"{math.ceil(10 * value) / 10:.1f}" if whole == "0" and value > 0 else whole


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
                ink = ink_on(tuple(np.ravel(image.cmap(image.norm(value)))))
                axes.text(column, row, percent_text(value), ha="center", va="center", fontsize=8, color=ink)
    axes.set_yticks(range(len(methods)), methods)
    slanted: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(families)), list(families.values()), fontsize=8, **(slanted if len(families) > 3 else {}))
    axes.tick_params(length=0)
    axes.set_facecolor("white")
    for spine in axes.spines.values():
        spine.set_visible(False)
    return image
