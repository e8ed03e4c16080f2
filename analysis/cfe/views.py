"""The counterfactual benchmark's tables as people read them: methods down, metrics or change families across."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.aggregate import lines
from analysis.cfe.constraints import constraint_notes
from analysis.cfe.findings import family_findings, table_6_findings
from analysis.cfe.labels import with_labels
from analysis.cfe.ranking import agreement
from analysis.cfe.settings import settings_sentence
from analysis.cfe.styles import DATASETS, FAMILIES, METHODS, TITLES
from analysis.cfe.tables import SHORT
from analysis.findings import INTERVALS
from analysis.styles import Titles
from analysis.views import GAP, View, counted, number, ordered, spread, title_of
from geco_ray.cfe.metrics import METRICS
from geco_ray.errors import simplify

RATES = {
    SHORT.get(name, name): f"{METRICS[name].title} %"
    for name in ("coverage", "base_validity", "empirical_robustness", "end_to_end_robustness")
}

NARROW_FAMILIES = {
    "architecture": "Arch.",
    "bootstrap": "Boot.",
    "seed": "Seed",
    "training_config": "Config",
    "label_update": "Label",
    "deletion": "Delet.",
    "data_addition": "Addit.",
    "bounded_parameter": "Perturb.",
}

SHARED_DRAWS = (
    "The paper's seeds are consecutive, so variants of different base models share random draws (the rows 'distinct "
    "draws' count them); standard deviations and intervals over base models are too small by that."
)


def table_6_views(table: pd.DataFrame, titles: Titles = TITLES) -> list[View]:
    """One view per data set, protocol and seeding: methods down, metrics across, rates in percent."""
    if table.empty:
        return []
    views = []
    header = ("Method", *RATES.values(), METRICS["distance"].title)
    for (dataset, protocol, seeding), part in _parts(with_labels(table, titles)):
        by_label = {row.method_label: row for row in lines(part)}
        rows = tuple(_table_6_row(by_label[label]) for label in ordered(part, METHODS, "method", "method_label"))
        seeds = counted(part["seeds"], "base model", "base models")
        requests = counted(part["requests"], "request", "requests")
        where = f"{title_of(part, 'dataset', dataset)}, protocol {protocol}, seeding {seeding}"
        name = f"Counterfactuals: {where}, {seeds}, {requests}"
        key = f"table_6_{dataset}_{protocol}_{seeding}"
        notes, setup = tuple(_table_6_notes(part)), settings_sentence(part)
        views.append(View(key, name, header, rows, table_6_findings(part), notes, narrow=header, setup=setup))
    return views


def _table_6_row(row: Any) -> tuple[str, ...]:
    usual = int(row.seeds)
    rates = (_percent(getattr(row, m), getattr(row, f"{m}_sd"), getattr(row, f"{m}_n"), usual) for m in RATES)
    distance = spread(row.distance, row.distance_sd, row.distance_n, 3, usual)
    return (row.method_label, *rates, distance)


def family_views(table: pd.DataFrame, titles: Titles = TITLES) -> list[View]:
    """One view per data set, protocol and seeding: methods down, change families across, robustness in percent."""
    if table.empty:
        return []
    labelled, views = with_labels(table, titles), []
    for (dataset, protocol, seeding), part in _parts(labelled):
        families = FAMILIES.in_order(part["family"])
        cells = {(row.method_label, row.family): row for row in lines(part)}
        rows = []
        for method in ordered(part, METHODS, "method", "method_label"):
            texts = []
            for family in families:
                cell: Any = cells.get((method, family))
                texts.append(GAP if cell is None else number(100 * cell.empirical_robustness, 1))
            rows.append((method, *texts))
        rows += _draw_rows(part, families)
        values = part.pivot_table(index="method_label", columns="family", values="empirical_robustness", dropna=False)
        findings = family_findings(agreement(values))
        where = f"{title_of(part, 'dataset', dataset)}, protocol {protocol}, seeding {seeding}"
        names = {family: title_of(part, "family", family) for family in families}
        views.append(
            View(
                f"families_{dataset}_{protocol}_{seeding}",
                f"Robustness by what changed: {where}",
                ("Method", *(_family_header(family, name) for family, name in names.items())),
                tuple(rows),
                findings,
                _family_notes(part),
                footer=len(rows) - part["method_label"].nunique(),
                narrow=("Method", *(NARROW_FAMILIES.get(family, name) for family, name in names.items())),
                setup=settings_sentence(part),
            )
        )
    return views


def _family_header(family: str, title: str) -> str:
    """The title, with the grid's name beside it where that is another word."""
    return title if simplify(family) in simplify(title) else f"{title} ({family})"


def _family_notes(part: pd.DataFrame) -> tuple[str, ...]:
    notes = [
        "Empirical robustness in percent: of the answers that the base model accepts, the share that a changed model "
        "still accepts. Mean over base models."
    ]
    if (part["draws"] < part["models"]).any():
        notes.append(SHARED_DRAWS)
    return tuple(notes)


def _draw_rows(part: pd.DataFrame, families: Sequence[str]) -> list[tuple[str, ...]]:
    known = part.drop_duplicates("family").set_index("family")
    variants = tuple(str(known.loc[family, "variants"]) for family in families)
    rows = [("variants per base model", *variants)]
    if known["draws"].notna().any():
        draws = (
            f"{number(known.loc[family, 'draws'], 0)}/{number(known.loc[family, 'models'], 0)}" for family in families
        )
        rows.append(("distinct draws / all variants", *draws))
    return rows


def _parts(table: pd.DataFrame) -> list[tuple[tuple[str, str, str], pd.DataFrame]]:
    parts = []
    for dataset in DATASETS.in_order(table["dataset"]):
        groups = table[table["dataset"] == dataset].groupby(["protocol", "seeding"], dropna=False, sort=True)
        for (protocol, seeding), part in groups:
            parts.append(((dataset, str(protocol), str(seeding)), part))
    return parts


def _percent(mean: Any, sd: Any, n: Any, usual: int) -> str:
    return spread(None if pd.isna(mean) else 100 * mean, None if pd.isna(sd) else 100 * sd, n, 1, usual)


def _table_6_notes(part: pd.DataFrame) -> list[str]:
    variants = sorted(set(part["variants"]))
    notes = [
        f"Mean ± standard deviation (ddof 1) over base models; {' or '.join(variants)} changed models per base model. "
        "Distance: mean L1 per feature, in units of the feature's median absolute deviation.",
        "End-to-end robustness = coverage x base validity x empirical robustness: of all requests, the share that is "
        "answered, accepted by the base model and still accepted by the changed model.",
    ]
    if (part["distinct_draws"] < part["changed_models"]).any():
        notes.append(SHARED_DRAWS)
    return [*notes, *constraint_notes(part), INTERVALS]
