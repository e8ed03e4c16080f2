"""Tuning a base model for the record, and holding a run's base model against the one that a record was made on.

A tuned value hangs on the base model's last bits where the rule's choice is close, and those hang on kernels and
releases. Equal probabilities on the tuning rows mean the same choice. Small differences are decided by running the rule
again; large ones mean that the record belongs to another model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from geco_ray.cfe.protocol import resolve_protocol
from geco_ray.cfe.tuning.record import TuningEntry, tune_command
from geco_ray.cfe.tuning.rule import tune

if TYPE_CHECKING:
    from geco_ray.cfe.base_model import BaseModel
    from geco_ray.cfe.data.datasets import Dataset

LARGEST_DIFFERENCE = 1e-3
"""Of a probability: above it a record counts as another model's."""


def tune_base(
    method: str, protocol: str, dataset: Dataset, base: BaseModel, made_with: Mapping[str, Any] | None = None
) -> TuningEntry:
    """Tune ``method`` on the first base model (seed 2026) of ``dataset``, as an entry of the record.

    Raises:
        UserError: no such method or protocol. KeyError: the method is not tuned.
        ValueError: another base seed, or no adverse validation row.
    """
    from geco_ray.cfe.factuals import tuning_factuals
    from geco_ray.cfe.methods.base import GenerationTask

    factuals = tuning_factuals(base, dataset.val, resolve_protocol(protocol).tuning_rows)
    outcome = tune(method, GenerationTask.of(dataset, base, protocol), factuals.x)
    return TuningEntry(
        method=method,
        protocol=protocol,
        seeding=base.key.seeding,
        dataset=dataset.name,
        data=dataset.fingerprint,
        base_seed=base.key.seed,
        selected=outcome.selected,
        by_rule=outcome.selected,
        row_ids=tuple(factuals.row_ids.tolist()),
        probabilities=tuple(factuals.base_probability.tolist()),
        candidates=outcome.candidates,
        made_with=dict(made_with or {}),
    )


def compare_tuning(entry: TuningEntry, dataset: Dataset, base: BaseModel) -> dict[str, Any]:
    """Hold the base model that an entry is about against the one that it was made on.

    Returns:
        ``difference``: the largest one of a probability on the tuning rows. ``again``: what the rule selects on
        ``base``, null where it was not run: the models are the same, or too far apart for it to matter.
    """
    places = {int(row): place for place, row in enumerate(dataset.val.row_ids)}
    rows = dataset.val.x[[places[row] for row in entry.row_ids]]
    difference = float(np.abs(base.model.probability(rows) - np.array(entry.probabilities, dtype=np.float32)).max())
    again = None
    if 0 < difference <= LARGEST_DIFFERENCE:
        again = tune_base(entry.method, entry.protocol, dataset, base).selected
    return {"difference": difference, "again": again, "by_rule": entry.by_rule, "selected": entry.selected}


def tuning_warning(records: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> str | None:
    """One sentence for each record (parameters, facts) whose tuned value was made on another base model, or None."""
    lines: list[str] = []
    for params, info in records:
        found = info.get("tuning")
        if not found:
            continue
        same = found["again"] in (None, found["by_rule"])
        if found["difference"] <= LARGEST_DIFFERENCE and same:
            continue
        where = (
            f"{params['method']} on {params['dataset']} (protocol {params['protocol']}, seeding {params['seeding']})"
        )
        what = f"the base model here differs from the tuned one by up to {found['difference']:.2g} in a probability"
        if not same:
            what += f", and the rule would select {_values(found['again'])} and not {_values(found['by_rule'])}"
        command = tune_command(str(params["dataset"]), str(params["protocol"]), str(params["seeding"]))
        lines.append(f"Tuning of {where}: {what}. `{command}` tunes again.")
    return " ".join(dict.fromkeys(lines)) or None


def _values(options: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in options.items())
