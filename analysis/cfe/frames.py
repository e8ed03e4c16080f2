"""The counterfactual benchmark's finished cells as frames: models, counterfactuals, how many changes each survives."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.load import LedgerLike, StageColumns, list_sums, records, settings_of, stage_frame, typed

MODELS = StageColumns(
    "models",
    ("dataset", "base_seed", "seeding", "kind", "family", "variant", "change_id", "level"),
    ("seed", "draw", "hard_disagreement", "probability_mae", "base_balanced_accuracy", "balanced_accuracy"),
    whole_numbers=("seed", "base_seed", "variant"),
)
COUNTERFACTUALS = StageColumns(
    "counterfactuals",
    ("dataset", "base_seed", "seeding", "method", "protocol"),
    ("factual_id", "status", "reason", "distance"),
    whole_numbers=("base_seed",),
    parts=frozenset({"proof"}),
)
VALIDITY = StageColumns(
    "validity",
    ("dataset", "base_seed", "seeding", "method", "protocol", "family"),
    ("factual_id", "status", "base_valid", "pairs", "survived", "eligible", "eligible_survived"),
    whole_numbers=("base_seed",),
)
STAGES = (MODELS, COUNTERFACTUALS, VALIDITY)
_KEPT = frozenset(
    {"factual_id", "dataset_row_id", "status", "reason", "distance", "base_valid", "certified", "constraints_kept"}
)


@dataclass(frozen=True)
class CfeFrames:
    """The finished cells of the counterfactual benchmark.

    ``cells_without_requests``: one row (axes and ``settings``) per counterfactuals cell whose table is empty, since its
    base model calls no test row adverse; no other frame shows that it ran.
    """

    models: pd.DataFrame
    counterfactuals: pd.DataFrame
    validity: pd.DataFrame
    cells_without_requests: pd.DataFrame


def load(ledger: LedgerLike, ids: Collection[str] | None = None) -> CfeFrames:
    """Read the finished cells whose ids are in ``ids``, or all of them."""
    counterfactuals = stage_frame(ledger, COUNTERFACTUALS, ids, _common)
    return CfeFrames(
        models=stage_frame(ledger, MODELS, ids, _without_weights),
        counterfactuals=counterfactuals,
        validity=_largest_bank(stage_frame(ledger, VALIDITY, ids, _count_survivors)),
        cells_without_requests=_cells_without_requests(ledger, ids, set(counterfactuals["cell"])),
    )


def _cells_without_requests(ledger: LedgerLike, ids: Collection[str] | None, seen: Collection[str]) -> pd.DataFrame:
    """The counterfactuals cells without a row among ``seen``, those that have one."""
    axes = COUNTERFACTUALS.axes
    rows = [
        {axis: record.params.get(axis) for axis in axes} | {"settings": settings_of(record, COUNTERFACTUALS)}
        for record in records(ledger, COUNTERFACTUALS, ids)
        if record.id not in seen
    ]
    return typed(pd.DataFrame(rows, columns=[*axes, "settings"]), COUNTERFACTUALS)


def _largest_bank(validity: pd.DataFrame) -> pd.DataFrame:
    """One cell per method, base seed and family: grids that ask 5 and 25 variants share a run folder."""
    if validity.empty:
        return validity
    keys = [*VALIDITY.axes, "settings"]
    cells = validity.groupby([*keys, "cell"], dropna=False, sort=True)["variants"].max().reset_index()
    best = cells.sort_values(["variants", "cell"], ascending=[False, True]).drop_duplicates(keys)
    return validity[validity["cell"].isin(best["cell"])].reset_index(drop=True)


def _without_weights(table: Any) -> Any:
    """Nor the labels of the file, dictionary columns that say what the record says."""
    dropped = [one.name for one in table.schema if one.name == "weights" or pa.types.is_dictionary(one.type)]
    return table.drop_columns(dropped)


def _common(table: Any) -> Any:
    """The columns that all methods share; a method's own ones stay in the ledger."""
    return table.select([name for name in table.column_names if name in _KEPT])


def _count_survivors(table: Any) -> Any:
    """One row per request: how many of the family's variants accept its counterfactual.

    ``pairs`` = variants asked (0 unless base-valid), ``survived`` = those that accept; ``eligible`` and
    ``eligible_survived`` count only variants that still reject the factual; ``variants`` = size of the family here.
    """
    valid, adverse = table["variant_valid"], table["factual_still_adverse"]
    lengths = pc.fill_null(pc.list_value_length(valid), 0).to_numpy()
    size = pc.max(pc.list_value_length(adverse)).as_py() or 0
    has_both = pc.and_(pc.is_valid(valid), pc.is_valid(adverse))
    both = table.filter(has_both)
    rows = np.flatnonzero(has_both.to_numpy())
    parents = rows[pc.list_parent_indices(both["variant_valid"]).to_numpy()]
    accepts = pc.list_flatten(both["variant_valid"]).cast(pa.float64()).to_numpy()
    rejects = pc.list_flatten(both["factual_still_adverse"]).cast(pa.float64()).to_numpy()
    count = table.num_rows
    added = {
        "pairs": lengths,
        "survived": list_sums(valid),
        "eligible": np.bincount(parents, weights=rejects, minlength=count),
        "eligible_survived": np.bincount(parents, weights=rejects * accepts, minlength=count),
        "variants": np.full(count, size),
    }
    kept = _common(table)
    for name, values in added.items():
        kept = kept.append_column(name, pa.array(np.asarray(values, dtype=np.int64)))
    return kept
