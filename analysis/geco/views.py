"""GECOBench's tables as people read them: methods down, models across."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from analysis.aggregate import highest, lines
from analysis.comparison.pairs import LEVEL
from analysis.comparison.sentences import comparison_notes
from analysis.geco.findings import REFERENCE_NOTE, WORDS, mass_findings, reference_labels
from analysis.geco.frames import model_settings
from analysis.geco.labels import with_labels
from analysis.geco.settings import settings_sentence
from analysis.geco.styles import TITLES
from analysis.styles import Titles
from analysis.views import GAP, View, names_of, number, ordered, spread, title_of


def accuracy_views(accuracy: pd.DataFrame, mass: pd.DataFrame) -> dict[tuple[str, str, str], tuple[str, int]]:
    """Test accuracy in percent and its n by (dataset, protocol, model label), for the footer of the mass table."""
    found: dict[tuple[str, str, str], tuple[str, int]] = {}
    if accuracy.empty or mass.empty:
        return found
    keys = ["dataset", "protocol", "encoder", "paradigm", "model_settings"]
    labels = mass.assign(model_settings=mass["settings"].map(model_settings))[[*keys, "model_label"]].drop_duplicates()
    for row in lines(accuracy.merge(labels, on=keys)):
        source = "test_accuracy" if pd.notna(row.test_accuracy) else "explained_accuracy"
        mean, sd, n = (getattr(row, source + end) for end in ("", "_sd", "_n"))
        text = spread(None if pd.isna(mean) else 100 * mean, None if pd.isna(sd) else 100 * sd, n, 1)
        found[(str(row.dataset), str(row.protocol), str(row.model_label))] = (text, int(n))
    return found


def mass_views(
    mass: pd.DataFrame, accuracy: pd.DataFrame, titles: Titles = TITLES, pairs: pd.DataFrame | None = None,
    level: float = LEVEL,
) -> list[View]:  # fmt: skip
    """One view per dataset and protocol: methods down, models across.

    ``pairs`` from ``geco.statistics.comparisons``, made at ``level``; without it nobody is said to be ahead.
    """
    if mass.empty:
        return []
    table = with_labels(mass, titles)
    accuracies = accuracy_views(accuracy, table)
    pairs = pd.DataFrame() if pairs is None else pairs
    notes = comparison_notes(pairs, WORDS, level) if len(pairs) else ()
    views = []
    for dataset in names_of(table, "dataset"):
        for protocol, part in table[table["dataset"] == dataset].groupby("protocol", dropna=False, sort=True):
            view = _mass_view(dataset, str(protocol), part, accuracies, pairs)
            views.append(replace(view, notes=(*view.notes, *notes)))
    return views


def _mass_view(
    dataset: str, protocol: str, part: pd.DataFrame, accuracies: dict[tuple[str, str, str], tuple[str, int]],
    pairs: pd.DataFrame,
) -> View:  # fmt: skip
    models = ordered(part, "paradigm", "model_label")
    methods = ordered(part, "method", "method_label")
    usual = {model: int(part.loc[part["model_label"] == model, "mean_n"].max()) for model in models}
    cells = {(row.method_label, row.model_label): row for row in lines(part)}
    references = reference_labels(part)
    rows = []
    for method in methods:
        texts = []
        for model in models:
            cell: Any = cells.get((method, model))
            texts.append(GAP if cell is None else spread(cell.mean, cell.mean_sd, cell.mean_n, 3, usual[model]))
        rows.append((f"{method} (reference)" if method in references else method, *texts))
    per_model = {model: part[part["model_label"] == model] for model in models}
    rows += [
        ("chance (share of marked words)", *(number(per_model[m]["chance"].mean(), 3) for m in models)),
        ("test accuracy of the model, %", *(accuracies.get((dataset, protocol, m), (GAP, 0))[0] for m in models)),
        ("seeds", *(str(usual[model]) for model in models)),
        ("sentences per seed, correct / all", *(_sentences(per_model[model]) for model in models)),
    ]
    note = (
        "Mass accuracy over the test sentences that the model got right: mean over sentences within a seed, then "
        "mean ± standard deviation (ddof 1) over seeds."
    )
    name = f"Mass accuracy: {title_of(part, 'dataset', dataset)}, protocol {protocol}"
    key = f"mass_accuracy_{dataset}_{protocol}"
    findings = (*mass_findings(part, models, pairs), *_undefined(part))
    notes = (note, REFERENCE_NOTE) if references else (note,)
    header, setup = ("Method", *models), settings_sentence(part)
    return View(key, name, header, tuple(rows), findings, notes, footer=4, setup=setup)


def _sentences(part: pd.DataFrame) -> str:
    row = highest(part, "all_rows")
    seeds = max(int(row.seeds), 1)
    return f"{row.rows / seeds:.0f} / {row.all_rows / seeds:.0f}"


def _undefined(part: pd.DataFrame) -> list[str]:
    lost = part[part["all_undefined"] > 0]
    if lost.empty:
        return []
    total, rows = int(lost["all_undefined"].sum()), int(part["all_rows"].sum())
    worst = highest(lost, "all_undefined")
    most = f"{worst.method_label} on {worst.model_label}: {worst.reasons}"
    return [f"{total:,} of {rows:,} scored rows have no value and are left out of the means (most: {most})."]
