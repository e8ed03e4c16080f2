"""Relative mass accuracy (GECOBench, Figure 2a): how much more falls on the truth than with the untrained model."""

from __future__ import annotations

from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures import FAINT, INK, Picture, grid_of_panels, heading, legend_columns, render
from analysis.geco.findings import is_reference
from analysis.geco.labels import with_labels
from analysis.geco.styles import TITLES
from analysis.styles import Style, Titles
from analysis.views import label_styles, names_of, ordered, title_of


def relative_figures(tests: pd.DataFrame, titles: Titles = TITLES) -> list[Picture]:
    """One figure per protocol, a panel per data set; none where no reference model was explained.

    ``tests`` from ``geco.statistics.signed_rank``: its rows against ``zero_shot``.
    """
    rows = tests[(tests["against"] == "zero_shot") & tests["median_rows"].notna()] if len(tests) else tests
    if rows.empty:
        return []
    pictures = []
    for protocol, part in with_labels(rows, titles).groupby("protocol", sort=True):
        part = part[~is_reference(part)]
        if len(part):
            alt = (
                f"Median log relative mass accuracy of {part['method_label'].nunique()} attribution methods on "
                f"{part['model_label'].nunique()} models against the zero-shot model."
            )
            name = f"relative_mass_accuracy_{protocol}"
            pictures.append(render(name, alt, partial(_draw, part), table="signed_rank_tests"))
    return pictures


def _draw(part: pd.DataFrame) -> Figure:
    datasets, models = names_of(part, "dataset"), ordered(part, "paradigm", "model_label")
    styles = label_styles(part, "method", "method_label")
    figure, panels = grid_of_panels(len(datasets), 2.8, 1.5)
    for axes, dataset in zip(panels, datasets, strict=True):
        own = part[part["dataset"] == dataset]
        _panel(axes, own, models, styles)
        axes.set_title(title_of(own, "dataset", dataset))
    heading(
        figure,
        "Does training move an explanation towards the words that decide?",
        "Median over correctly classified sentences of all seeds of ln(mass accuracy / that of the zero-shot model on "
        "the same sentence).\n0: no difference; ln 2 = 0.69: twice as much. Sentences where either is 0 or undefined "
        "are left out and counted in the table.",
    )
    handles = [
        Line2D([], [], color=style.colour, marker=style.marker, ms=6, lw=1, ls=(0, (3, 2)), label=label)
        for label, style in styles.items()
    ]
    columns = legend_columns(list(styles), 5)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=8.5)
    return figure


def _panel(axes: Axes, part: pd.DataFrame, models: list[str], styles: dict[str, Style]) -> None:
    for label, style in styles.items():
        own = part[part["method_label"] == label].drop_duplicates("model_label").set_index("model_label")["median_rows"]
        values = own.reindex(models).astype("float64")
        axes.plot(range(len(models)), values, color=style.colour, marker=style.marker, ms=6, lw=1, ls=(0, (3, 2)))
    axes.axhline(0, color=INK, lw=1)
    axes.set_xticks(range(len(models)), models, fontsize=8)
    axes.set(xlim=(-0.4, len(models) - 0.6), ylabel="Median log RMA")
    axes.grid(axis="y", color=FAINT, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
