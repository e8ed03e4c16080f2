"""Every counterfactual of a run as data of the page: values, changes, what became of it, which changes it survives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.aggregate import lines
from analysis.cfe.frames import COUNTERFACTUALS, CfeFrames
from analysis.cfe.labels import with_labels
from analysis.cfe.rows.table_units import Shown, shown
from analysis.load import stage_frame
from analysis.rows.sampling import every_kth, ordinal, size_of
from analysis.rows.section import rows_section
from analysis.topic import Numbers, Section
from analysis.views import names_of, ordered, with_titles

_READ = frozenset({"factual_id", "dataset_row_id", "status", "reason", "distance", "factual", "counterfactual"})
_SAME = 1e-6  # standardised: an answer that went through float32 has not changed the feature
_SCRIPT = Path(__file__).parents[1] / "templates" / "counterfactuals.js"
_HOW = (
    "A row is a request and one method's answer; a family's column says how many of its changed models accept it, of "
    "those that were asked: “–” where none was, since the base model does not accept it. MAD is a feature's median "
    "absolute deviation in the training rows, by which the distance counts. “Look” shows the values. Methods disagree "
    "about a request by the largest less the smallest share of changed models that accept their answers."
)


def counterfactual_rows(numbers: Numbers[CfeFrames]) -> Section | None:
    """The section of all counterfactuals; None where there is none."""
    frame = numbers.frames.counterfactuals
    if frame.empty:
        return None
    labelled = with_labels(frame, numbers.titles)
    lead, groups, room = [_HOW], [], numbers.room
    keys = ["dataset_rank", "dataset", "protocol", "seeding"]
    parts = [part for _, part in labelled.groupby(keys, sort=True)]
    for left, part in zip(range(len(parts), 0, -1), parts, strict=True):
        first = part.iloc[0]
        name = f"{first['dataset_title']} (protocol {first['protocol']}, seeding {first['seeding']})"
        about = _about(numbers, str(first["dataset"]), str(first["settings"]))
        if about.hidden:
            lead.append(f"{name}: {about.hidden}.")
            continue
        group = _Group(numbers, part, name, about)
        step, made = every_kth(group.requests, group.data, room // left)
        room -= size_of(made)
        lead.append(
            f"{name}: {len(made['answers']):,} of {len(part):,} answers, those to {ordinal(step)} row of the table "
            f"that was asked about; values in {_units(about)}."
        )
        groups.append(made)
    return rows_section("counterfactuals", "Counterfactuals", "Every counterfactual", lead, groups, _SCRIPT)


def _units(about: Shown) -> str:
    return "the table's units" if about.units else "standard deviations, since the table is not here"


def _about(numbers: Numbers[CfeFrames], dataset: str, settings: str) -> Shown:
    data = str(json.loads(settings).get("data"))
    return shown(dataset, data, numbers.records(), numbers.data_dir, numbers.person_rows)


class _Group:
    """The answers about one data set under one protocol and seeding."""

    def __init__(self, numbers: Numbers[CfeFrames], part: pd.DataFrame, name: str, about: Shown) -> None:
        self.name, self.about = name, about
        self.methods = ordered(part, "method", "method_label")
        cells = part.drop_duplicates("cell").set_index("cell")
        self._label = cells["method_label"]
        values = stage_frame(numbers.ledger, COUNTERFACTUALS, set(self._label.index), _with_values)
        rank = values["cell"].map(self._label).map({label: place for place, label in enumerate(self.methods)})
        self._rows = values.assign(rank=rank).sort_values(["dataset_row_id", "base_seed", "rank"], kind="stable")
        self.requests = sorted(set(self._rows["dataset_row_id"]))
        validity = numbers.frames.validity
        own = validity[validity["dataset"] == part["dataset"].iloc[0]] if len(validity) else validity
        self.families, self._survival = _survival(own, numbers)

    def data(self, requests: Sequence[int]) -> dict[str, Any]:
        """The group as the page's script reads it, of requests about these rows of the table."""
        chosen = self._rows[self._rows["dataset_row_id"].isin(list(requests))]
        width = len(chosen["factual"].iloc[0])
        units = self.about.units
        names = list(units.features) if units else [f"feature {place + 1}" for place in range(width)]
        mean, scale = (units.mean, units.scale) if units else (np.zeros(width), np.ones(width))
        factuals: dict[str, list[float]] = {}
        asked = []
        for row in lines(chosen):
            standardised = np.asarray(row.factual, dtype=np.float64)
            factuals.setdefault(str(row.dataset_row_id), _tidy(standardised * scale + mean))
            asked.append(self._answer(row, standardised, mean, scale))
        return {
            "title": self.name, "features": names, "methods": self.methods, "families": self.families,
            "mad": _tidy(units.mad) if units else None, "factuals": factuals, "answers": asked,
        }  # fmt: skip

    def _answer(self, row: Any, factual: np.ndarray[Any, Any], mean: Any, scale: Any) -> list[Any]:
        """Row of the table, base model, method, status, reason, distance, values (null: unchanged), survival."""
        values = None
        if row.counterfactual is not None:
            answer = np.asarray(row.counterfactual, dtype=np.float64)
            changed = np.abs(answer - factual) > _SAME
            tidy = _tidy(answer * scale + mean)
            values = [value if moved else None for value, moved in zip(tidy, changed.tolist(), strict=True)]
        key = (row.base_seed, row.seeding, row.method, row.protocol, row.settings, row.factual_id)
        distance = None if pd.isna(row.distance) else round(float(row.distance), 3)
        reason = None if pd.isna(row.reason) else str(row.reason)
        where = [int(row.dataset_row_id), int(row.base_seed), int(row.rank)]
        return [*where, row.status, reason, distance, values, self._survival.get(key)]


def _with_values(table: Any) -> Any:
    return table.select([name for name in table.column_names if name in _READ])


def _survival(validity: pd.DataFrame, numbers: Numbers[CfeFrames]) -> tuple[list[str], dict[Any, list[Any]]]:
    """Titles of the families, and request to survived and asked pairs of each family in turn (null where none)."""
    if validity.empty:
        return [], {}
    names = names_of(with_titles(validity[["family"]].drop_duplicates(), numbers.titles, ("family",)), "family")
    titles = numbers.titles.of("family", names)
    place = {name: number for number, name in enumerate(names)}
    found: dict[Any, list[Any]] = {}
    keys = ["base_seed", "seeding", "method", "protocol", "settings", "factual_id"]
    columns = zip(*(validity[name].tolist() for name in (*keys, "family", "survived", "pairs")), strict=True)
    for *key, family, survived, pairs in columns:
        if pairs:
            own = found.setdefault(tuple(key), [None] * len(names))
            own[place[family]] = [survived, pairs]
    return [titles[name] for name in names], found


def _tidy(values: Any) -> list[float]:
    """Six significant digits, as many as a float32 has."""
    return [float(f"{value:.6g}") for value in values]
