"""Which counterfactuals survive: each one held fixed and tested on changed models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from geco_ray.cfe.model_stack import StackedModels

SCHEMA = pa.schema(
    [
        pa.field("factual_id", pa.int64()),
        pa.field("status", pa.string()),
        pa.field("base_valid", pa.bool_()),
        pa.field("variant_valid", pa.list_(pa.bool_())),
        pa.field("factual_still_adverse", pa.list_(pa.bool_())),
    ]
)
"""Columns of every validity table; the lists have one entry per changed model, in their order.

``base_valid``: the status is ``found``. ``variant_valid``: whether the changed model decides the counterfactual
favourably, null unless base-valid. ``factual_still_adverse``: whether it decides the factual adversely.
"""


def validity_table(models: StackedModels, counterfactuals: pa.Table) -> pa.Table:
    """Test each counterfactual, and its factual, on each changed model.

    Args:
        models: the changed models.
        counterfactuals: what :func:`geco_ray.cfe.generation.generate` gave for their base model.

    Returns:
        One row per request in the given order: :data:`SCHEMA`.
    """
    valid = [state == "found" for state in counterfactuals["status"].to_pylist()]
    survived: list[list[bool] | None] = [None] * len(valid)
    found = np.flatnonzero(valid)
    for row, answer in zip(found, _decide(models, counterfactuals["counterfactual"].take(found)), strict=True):
        survived[row] = answer.tolist()
    columns = {
        "factual_id": counterfactuals["factual_id"],
        "status": counterfactuals["status"],
        "base_valid": valid,
        "variant_valid": survived,
        "factual_still_adverse": (~_decide(models, counterfactuals["factual"])).tolist(),
    }
    return pa.table(columns, schema=SCHEMA)


def _decide(models: StackedModels, rows: pa.ChunkedArray) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """The decisions on a column of rows; bool (rows, models)."""
    if not len(rows):
        return np.empty((0, models.count), dtype=np.bool_)
    return models.favourable(np.array(rows.to_pylist(), dtype=np.float64))
