"""Columns that make a file of the counterfactual benchmark say what it is, wherever it is copied to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geco_ray.cells import Cell
from geco_ray.experiments.labels import options_text, with_labels

if TYPE_CHECKING:
    import pyarrow as pa

LABELS = ("dataset", "base_seed", "seeding", "protocol", "method", "options", "family")


def labelled(table: pa.Table, cell: Cell) -> pa.Table:
    """``table`` with the cell's values in front: of :data:`LABELS` those that the cell has.

    See :func:`geco_ray.experiments.labels.with_labels`.
    """
    params = cell.params()
    if "method_options" in params:
        params = params | {"options": options_text(params["method_options"])}
    return with_labels(table, {name: params[name] for name in LABELS if name in params})
