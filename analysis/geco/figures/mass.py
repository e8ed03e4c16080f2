"""Figure 1: mass accuracy by attribution method and model, a panel per dataset, with the chance level drawn."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.aggregate import highest, lines
from analysis.figures import BAND, FAINT, GREY, INK, Picture, empty, grid_of_panels, heading, legend_columns, render
from analysis.geco.findings import is_reference, reference_labels
from analysis.geco.labels import with_labels
from analysis.geco.styles import TITLES
from analysis.geco.unvalued import why_no_value
from analysis.styles import Style, Titles
from analysis.views import counted, label_styles, names_of, ordered, title_of
from geco_ray.table import amount


def mass_figures(mass: pd.DataFrame, per_seed: pd.DataFrame, titles: Titles = TITLES) -> list[Picture]:
    """One figure per protocol; ``mass`` from ``geco.tables.metric_table``, ``per_seed`` from ``metric_by_seed``."""
    if mass.empty:
        return []
    pictures = []
    for protocol, part in with_labels(mass, titles).groupby("protocol", sort=True):
        name = f"mass_accuracy_{protocol}"
        if part["mean"].notna().any():
            seeds = per_seed[per_seed["protocol"] == protocol]
            pictures.append(render(name, _alt(part), lambda part=part, seeds=seeds: _draw(part, seeds)))  # type: ignore[misc]
        else:
            pictures.append(empty(name, f"No mass accuracy: {why_no_value(part)}."))
    return pictures


def _alt(part: pd.DataFrame) -> str:
    judged = part[~is_reference(part) & part["mean"].notna()]
    best = highest(part if judged.empty else judged, "mean")
    return (
        f"Mass accuracy of {amount(part['method_label'].nunique(), 'attribution method', 'attribution methods')} on "
        f"{amount(part['model_label'].nunique(), 'model', 'models')} and "
        f"{amount(part['dataset'].nunique(), 'dataset', 'datasets')}; the highest mean of those that "
        f"explain the model is {best.mean:.2f}, {best.method_label} on {best.model_label}."
    )


def _draw(part: pd.DataFrame, per_seed: pd.DataFrame) -> Figure:
    datasets = names_of(part, "dataset")
    methods = ordered(part, "method", "method_label")
    models = ordered(part, "paradigm", "model_label")
    references = reference_labels(part)
    names = [f"{method} (reference)" if method in references else method for method in methods]
    band = 0.24 + 0.075 * len(models)
    figure, panels = grid_of_panels(len(datasets), 0.75 + band * len(methods), 1.25)
    for axes, dataset in zip(panels, datasets, strict=True):
        _panel(axes, part[part["dataset"] == dataset], per_seed, methods, models)
        axes.set_yticks(range(len(methods)), names)
        axes.set_title(title_of(part, "dataset", dataset))
    seeds = int(part["mean_n"].max())
    heading(
        figure,
        "How much of an explanation falls on the words that decide?",
        "Share of an attribution's absolute mass on the marked words (1 = all of it), over test "
        f"sentences that the model got right.\nMark: mean over {seeds} seed{'s' if seeds > 1 else ''}"
        + ("; bar: ± 1 standard deviation over seeds; ticks: single seeds." if seeds > 1 else ", so no spread."),
    )
    _legend(figure, part, models)
    return figure


def _panel(axes: Axes, part: pd.DataFrame, per_seed: pd.DataFrame, methods: list[str], models: list[str]) -> None:
    step = 0.76 / max(len(models), 1)
    for place in range(0, len(methods), 2):
        axes.axhspan(place - 0.5, place + 0.5, color=BAND, zorder=0, lw=0)
    styles = _styles(part, models)
    keys = ["dataset", "encoder", "paradigm", "method", "settings"]
    seeds = per_seed.merge(part[[*keys, "method_label", "model_label"]], on=keys)
    for row in lines(part):
        offset = (models.index(row.model_label) - (len(models) - 1) / 2) * step
        dots = seeds[(seeds["method_label"] == row.method_label) & (seeds["model_label"] == row.model_label)]
        _point(
            axes, row, styles[row.model_label], methods.index(row.method_label) + offset, dots["mean"].dropna().tolist()
        )
    chance = part["chance"].mean()
    if pd.notna(chance):
        axes.axvline(chance, color=INK, lw=1.0, ls=(0, (4, 3)), zorder=1)
        axes.set_title(f"chance {chance:.2f}", loc="right", fontsize=8.5, fontweight="normal", color=GREY)
    axes.set(xlim=(0, 1), ylim=(len(methods) - 0.5, -0.5), xlabel="Mass accuracy")
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".50", ".75", "1"])
    axes.grid(axis="x", color=FAINT, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)


def _styles(part: pd.DataFrame, models: list[str]) -> dict[str, Style]:
    return label_styles(part, "paradigm", "model_label")


def _point(axes: Axes, row: Any, style: Style, y: float, seeds: list[float]) -> None:
    if pd.isna(row.mean):
        axes.annotate("n=0", (0, y), (2, 0), textcoords="offset points", fontsize=6, color=style.colour, va="center")
        return
    if len(seeds) > 1:
        axes.scatter(seeds, [y] * len(seeds), marker="|", s=26, color=style.colour, alpha=0.55, lw=0.8, zorder=2)
    if pd.notna(row.mean_sd):
        axes.plot(
            [row.mean - row.mean_sd, row.mean + row.mean_sd],
            [y, y],
            color=style.colour,
            lw=1.6,
            zorder=3,
        )
    face = "white" if style.hollow else style.colour
    axes.plot(
        [row.mean],
        [y],
        marker=style.marker,
        ms=5.2,
        color=style.colour,
        mfc=face,
        mec=style.colour,
        mew=1.1,
        zorder=4,
        clip_on=False,
    )


def _legend(figure: Figure, part: pd.DataFrame, models: list[str]) -> None:
    styles = _styles(part, models)
    handles, most = [], int(part["mean_n"].max())
    for model in models:
        style = styles[model]
        seeds = part.loc[part["model_label"] == model, "mean_n"]
        label = model if (seeds == most).all() else f"{model} ({counted(seeds, 'seed', 'seeds')})"
        face = "white" if style.hollow else style.colour
        handles.append(
            Line2D(
                [], [], color=style.colour, marker=style.marker, mfc=face, mec=style.colour, ms=6, lw=1.6, label=label
            )
        )
    handles.append(Line2D([], [], color=INK, lw=1.0, ls=(0, (4, 3)), label="chance: share of marked words"))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=legend_columns([str(handle.get_label()) for handle in handles], 7),
        frameon=False,
        fontsize=8.5,
    )
