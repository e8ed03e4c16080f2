"""Columns that make a file say what it is, wherever it is copied to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def with_labels(table: pa.Table, labels: Mapping[str, str | int | None]) -> pa.Table:
    """``table`` with ``labels`` in front, one column each, the same in all rows.

    A column that the table has already is left as it is. Texts are dictionary columns; numbers, and None, are int64.
    """
    for name in reversed([name for name in labels if name not in table.column_names]):
        table = table.add_column(0, name, _repeat(labels[name], table.num_rows))
    return table


def options_text(options: Mapping[str, Any]) -> str:
    """A method's options as JSON with sorted keys."""
    return json.dumps(options, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _repeat(value: str | int | None, rows: int) -> pa.Array:
    import pyarrow as pa

    if isinstance(value, str):
        return pa.repeat(pa.scalar(value, pa.string()), rows).dictionary_encode()
    return pa.repeat(pa.scalar(value, pa.int64()), rows)
