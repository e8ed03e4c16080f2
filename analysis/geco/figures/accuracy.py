"""Accuracy of the classifiers on their three splits (GECOBench, model performance), seed by seed where they are few."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.aggregate import lines
from analysis.figures import FAINT, INK, Picture, grid_of_panels, heading, render
from analysis.geco.styles import TITLES
from analysis.geco.tables import SPLITS
from analysis.styles import Titles
from analysis.views import names_of, with_titles

_SHADES = dict(zip(SPLITS, ("#BFD9EC", "#5B9BC8", "#0A4C7D"), strict=True))


def accuracy_figures(accuracy: pd.DataFrame, titles: Titles = TITLES) -> list[Picture]:
    """One figure per protocol, a panel per data set; ``accuracy`` from ``geco.tables.accuracy_table``."""
    known = accuracy[accuracy["test_accuracy"].notna()] if len(accuracy) else accuracy
    if known.empty:
        return []
    pictures = []
    for protocol, part in with_titles(known, titles, ("dataset", "paradigm")).groupby("protocol", sort=True):
        low, high = 100 * part["test_accuracy"].min(), 100 * part["test_accuracy"].max()
        alt = f"Test accuracy of {part['paradigm'].nunique()} models from {low:.1f} to {high:.1f} percent."
        pictures.append(render(f"model_accuracy_{protocol}", alt, partial(_draw, part), table="model_accuracy"))
    return pictures


def _draw(part: pd.DataFrame) -> Figure:
    datasets = names_of(part, "dataset")
    figure, panels = grid_of_panels(len(datasets), 2.3, 1.2)
    for axes, dataset in zip(panels, datasets, strict=True):
        own = part[part["dataset"] == dataset].sort_values(["paradigm_rank", "paradigm", "encoder", "model_settings"])
        _panel(axes, own)
        axes.set_title(str(own["dataset_title"].iloc[0]))
    heading(
        figure,
        "How often are the models right?",
        "Accuracy of the saved model, mean over seeds; whiskers: ± 1 standard deviation over seeds (ddof 1).",
    )
    handles = [Patch(color=shade, label=split.split("_")[0]) for split, shade in _SHADES.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=8.5)
    return figure


def _panel(axes: Axes, part: pd.DataFrame) -> None:
    for place, (split, shade) in enumerate(_SHADES.items()):
        at = np.arange(len(part)) + (place - 1) * 0.27
        heights = 100 * part[split].astype("float64").to_numpy()
        spread = 100 * part[f"{split}_sd"].astype("float64").fillna(0).to_numpy()
        axes.bar(at, heights, 0.25, color=shade, yerr=spread, error_kw={"lw": 1, "ecolor": INK})
    names = [
        row.paradigm_title if (part["paradigm"] == row.paradigm).sum() == 1 else f"{row.paradigm_title} ({row.encoder})"
        for row in lines(part)
    ]
    axes.set_xticks(range(len(part)), names, fontsize=8)
    axes.set(ylim=(0, 100), ylabel="Accuracy, %")
    axes.grid(axis="y", color=FAINT, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
