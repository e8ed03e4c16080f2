"""The counterfactual benchmark's tables as people read them: methods down, metrics or change families across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pandas as pd

from analysis.aggregate import lines
from analysis.cfe.comparisons import WORDS
from analysis.cfe.findings import concordance_finding, family_findings, table_6_findings
from analysis.cfe.labels import with_labels
from analysis.cfe.ranking import agreement, shown_reversals
from analysis.cfe.settings import settings_sentence
from analysis.cfe.styles import TITLES
from analysis.cfe.tables import SHORT
from analysis.comparison.pairs import LEVEL
from analysis.comparison.ranks import concordance
from analysis.comparison.sentences import comparison_notes
from analysis.styles import Titles
from analysis.views import GAP, View, counted, names_of, number, ordered, percent, spread, title_of
from geco_ray.cfe.metrics import METRICS
from geco_ray.errors import simplify

RATES = {
    SHORT.get(name, name): f"{METRICS[name].title} %"
    for name in ("coverage", "base_validity", "empirical_robustness", "end_to_end_robustness")
}

SHARED_DRAWS = (
    "The paper's seeds are consecutive, so variants of different base models share random draws (the rows 'distinct "
    "draws' count them); standard deviations and intervals over base models are too small by that."
)


def table_6_views(
    table: pd.DataFrame,
    titles: Titles = TITLES,
    pairs: pd.DataFrame | None = None,
    level: float = LEVEL,
    tuning: Mapping[tuple[str, str, str], tuple[str, ...]] = MappingProxyType({}),
) -> list[View]:
    """One view per data set, protocol and seeding: methods down, metrics across, rates in percent.

    ``pairs`` from ``cfe.comparisons``, made at ``level``; without it nobody is said to be ahead. ``tuning`` are further
    notes by data set, protocol and seeding.
    """
    if table.empty:
        return []
    views, pairs = [], pd.DataFrame() if pairs is None else pairs
    compared = comparison_notes(pairs, WORDS["empirical_robustness"], level) if len(pairs) else ()
    over_data = _over_data_sets(with_labels(table, titles))
    header = ("Method", *RATES.values(), METRICS["distance"].title)
    for (dataset, protocol, seeding), part in _parts(with_labels(table, titles)):
        by_label, usual = {row.method_label: row for row in lines(part)}, int(part["seeds"].max())
        rows = tuple(_table_6_row(by_label[label], usual) for label in ordered(part, "method", "method_label"))
        seeds = counted(part["seeds"], "base model", "base models")
        requests = counted(part["requests"], "request", "requests")
        where = f"{title_of(part, 'dataset', dataset)}, protocol {protocol}, seeding {seeding}"
        name = f"Counterfactuals: {where}, {seeds}, {requests}"
        key = f"table_6_{dataset}_{protocol}_{seeding}"
        extra = tuning.get((str(dataset), protocol, seeding), ())
        notes, setup = (*extra, *_table_6_notes(part), *compared, *over_data), settings_sentence(part)
        own = _own_pairs(pairs, dataset, protocol, seeding)
        views.append(View(key, name, header, rows, table_6_findings(part, own), notes, narrow=header, setup=setup))
    return views


def _own_pairs(pairs: pd.DataFrame, *part: str) -> pd.DataFrame:
    """The comparisons of one data set, protocol and seeding."""
    if not len(pairs):
        return pairs
    same = [
        pairs[key].astype(str) == value for key, value in zip(("dataset", "protocol", "seeding"), part, strict=True)
    ]
    return pairs[same[0] & same[1] & same[2]]


def _over_data_sets(table: pd.DataFrame) -> list[str]:
    """Friedman's and Nemenyi's tests over the data sets of each protocol and seeding, as sentences."""
    found = []
    for _, part in table.groupby(["protocol", "seeding"], sort=True):
        values = part.pivot_table(index="method_label", columns="dataset", values="empirical_robustness", dropna=False)
        if text := concordance_finding(concordance(values.astype("float64"))):
            found.append(f"Empirical robustness. {text}")
    return found


def _table_6_row(row: Any, usual: int) -> tuple[str, ...]:
    rates = (_percent(getattr(row, m), getattr(row, f"{m}_sd"), getattr(row, f"{m}_n"), usual) for m in RATES)
    distance = spread(row.distance, row.distance_sd, row.distance_n, 3, usual)
    return (row.method_label, *rates, distance)


def family_views(
    table: pd.DataFrame, titles: Titles = TITLES, per_seed: pd.DataFrame | None = None, level: float = LEVEL
) -> list[View]:
    """One view per data set, protocol and seeding: methods down, change families across, robustness in percent.

    ``per_seed`` are the values of each base model, by which a change of places is told from chance at ``level``.
    """
    if table.empty:
        return []
    views = []
    for part_of, part in _parts(with_labels(table, titles)):
        families = names_of(part, "family")
        cells = {(row.method_label, row.family): row for row in lines(part)}
        rows = []
        for method in ordered(part, "method", "method_label"):
            own: list[Any] = [cells.get((method, family)) for family in families]
            rows.append(
                (method, *(GAP if cell is None else number(100 * cell.empirical_robustness, 1) for cell in own))
            )
        rows += _draw_rows(part, families)
        names = {family: title_of(part, "family", family) for family in families}
        profile = titles.kind("family").profile
        view = View(
            "_".join(("families", *part_of)),
            f"Robustness by what changed: {_where(part, part_of)}",
            ("Method", *(_family_header(family, name) for family, name in names.items())),
            tuple(rows),
            _family_findings(part, _shown_reversals(per_seed, part_of, level)),
            _family_notes(part),
            footer=len(rows) - part["method_label"].nunique(),
            narrow=("Method", *(profile(family).short or name for family, name in names.items())),
            setup=settings_sentence(part),
        )
        views.append(view)
    return views


def _where(part: pd.DataFrame, part_of: tuple[str, str, str]) -> str:
    dataset, protocol, seeding = part_of
    return f"{title_of(part, 'dataset', dataset)}, protocol {protocol}, seeding {seeding}"


def _family_findings(part: pd.DataFrame, shown: int) -> tuple[str, ...]:
    values = part.pivot_table(index="method_label", columns="family", values="empirical_robustness", dropna=False)
    return family_findings(agreement(values), shown)


def _shown_reversals(per_seed: pd.DataFrame | None, part: tuple[str, str, str], level: float) -> int:
    own = pd.DataFrame() if per_seed is None else _own_pairs(per_seed, *part)
    if own.empty:
        return 0
    named = own.assign(name=own["method"] + " " + own["settings"])
    wide = named.pivot(index="base_seed", columns=["name", "family"], values="empirical_robustness")
    return shown_reversals(wide.astype("float64"), level)


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
    for dataset in names_of(table, "dataset"):
        groups = table[table["dataset"] == dataset].groupby(["protocol", "seeding"], dropna=False, sort=True)
        for (protocol, seeding), part in groups:
            parts.append(((dataset, str(protocol), str(seeding)), part))
    return parts


def _percent(mean: Any, sd: Any, n: Any, usual: int) -> str:
    text = spread(None if pd.isna(mean) else 100 * mean, None if pd.isna(sd) else 100 * sd, n, 1, usual)
    return text if text.startswith(GAP) else text.replace(number(100 * mean, 1), percent(mean, 1), 1)


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
    return notes
