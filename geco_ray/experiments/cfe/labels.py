"""Columns that make a file of the counterfactual benchmark say what it is, wherever it is copied to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from geco_ray.cells import Cell

if TYPE_CHECKING:
    import pyarrow as pa

LABELS = ("dataset", "base_seed", "seeding", "protocol", "method", "options", "family")


def labelled(table: pa.Table, cell: Cell) -> pa.Table:
    """``table`` with the cell's values in front, one column each, the same in all rows.

    Of :data:`LABELS` those that the cell has; a column that the table has already is left as it is. Texts are
    dictionary columns; ``base_seed`` is int64; ``options`` is the method's options as JSON with sorted keys.
    """
    labels = _labels(cell.params())
    for name in reversed([name for name in labels if name not in table.column_names]):
        table = table.add_column(0, name, _repeat(labels[name], table.num_rows))
    return table


def _labels(params: dict[str, Any]) -> dict[str, str | int]:
    if "method_options" in params:
        options = json.dumps(params["method_options"], sort_keys=True, separators=(",", ":"), allow_nan=False)
        params = params | {"options": options}
    return {name: params[name] for name in LABELS if name in params}


def _repeat(value: str | int, rows: int) -> pa.Array:
    import pyarrow as pa

    if isinstance(value, int):
        return pa.repeat(pa.scalar(value, pa.int64()), rows)
    return pa.repeat(pa.scalar(value, pa.string()), rows).dictionary_encode()
