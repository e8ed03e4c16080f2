"""Which counterfactuals survive: each one held fixed and tested on changed models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


class Evaluator(Protocol):
    """Something that has an opinion on rows: :class:`geco_ray.cfe.rowwise.DevicePass`, for one."""

    def favourable(self, x: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Whether each model calls each row of ``x`` (n, d) favourable; bool (n, models)."""
        ...


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
    factuals, points = _rows(counterfactuals)
    if len(points):
        for row, answer in zip(np.flatnonzero(valid), models.favourable(points), strict=True):
            survived[row] = answer.tolist()
    columns = {
        "factual_id": counterfactuals["factual_id"],
        "status": counterfactuals["status"],
        "base_valid": valid,
        "variant_valid": survived,
        "factual_still_adverse": (~models.favourable(factuals)).tolist() if len(factuals) else [],
    }
    return pa.table(columns, schema=SCHEMA)


def count_disagreements(models: StackedModels, other: Evaluator, counterfactuals: pa.Table) -> int:
    """How many answers of ``other``, on factuals and base-valid counterfactuals, are not what ``models`` decide.

    Args:
        models: the models, as they decide.
        other: the same models as other kernels see them.
        counterfactuals: as in :func:`validity_table`.
    """
    asked = [rows for rows in _rows(counterfactuals) if len(rows)]
    return sum(int(np.sum(models.favourable(rows) != other.favourable(rows))) for rows in asked)


def _rows(counterfactuals: pa.Table) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The factuals and the base-valid counterfactuals, float64 (rows, d)."""
    found = np.flatnonzero([state == "found" for state in counterfactuals["status"].to_pylist()])
    points = counterfactuals["counterfactual"].take(pa.array(found, pa.int64()))
    factuals = counterfactuals["factual"]
    return np.array(factuals.to_pylist(), dtype=np.float64), np.array(points.to_pylist(), dtype=np.float64)
