"""The rows of a submitted file as plain values, each with its place: CSV, Parquet and JSONL read alike."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from geco_ray.errors import UserError
from geco_ray.files.json_lines import read_json_lines
from geco_ray.files.yaml_lines import decode_text

Row = tuple[str, Mapping[str, Any]]
"""Where the row is, such as ``mine.csv:3``, and its values by column; an empty cell of a CSV is None."""


def read_rows(path: Path) -> Iterator[Row]:
    """Every row of a file.

    Raises:
        UserError: not UTF-8, not of its format, a column given twice, a row of another length.
    """
    if path.suffix == ".parquet":
        yield from _parquet(path)
    elif path.suffix == ".jsonl":
        for line, value in read_json_lines(decode_text(path.read_bytes(), str(path)), str(path)):
            if not isinstance(value, dict):
                raise UserError("the line is no JSON object", where=f"{path}:{line}", found=type(value).__name__)
            yield f"{path}:{line}", value
    else:
        yield from _csv(path)


def _csv(path: Path) -> Iterator[Row]:
    reader = csv.reader(decode_text(path.read_bytes(), str(path)).splitlines())
    header = next(reader, [])
    if len(set(header)) != len(header) or not header:
        what = "a column is given twice" if header else "the file is empty"
        raise UserError(what, where=f"{path}:1", remedy="Give each column once")
    for cells in reader:
        where = f"{path}:{reader.line_num}"
        if len(cells) != len(header):
            raise UserError("the row is of another length", where=where, found=len(cells), expected=str(len(header)))
        yield where, {name: cell if cell.strip() else None for name, cell in zip(header, cells, strict=True)}


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(path).to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"not a Parquet file: {str(error).splitlines()[0]}", where=str(path)) from None
    for number, row in enumerate(rows):
        yield f"{path}, row {number}", row


def whole_number(row: Row, key: str, default: int | None = None) -> int:
    """A column that holds a whole number from 0.

    Raises:
        UserError: it is missing, or no such number.
    """
    where, values = row
    value = values.get(key)
    value = default if value is None else value
    if value is None:
        raise UserError(f"the row has no {key}", where=where, remedy=f"Give a column {key}")
    try:
        number = int(value) if isinstance(value, str | int) and not isinstance(value, bool) else -1
    except ValueError:
        number = -1
    if number < 0:
        raise UserError(f"{key} is no whole number from 0", where=where, found=value)
    return number


def text(row: Row, key: str, default: str | None = None) -> str:
    """A column that holds a text, else the card's value.

    Raises:
        UserError: neither is there.
    """
    where, values = row
    value = values.get(key)
    value = default if value is None else value
    if not isinstance(value, str):
        remedy = f"Give a column {key}, or {key}: in the card"
        raise UserError(f"the row has no {key}", where=where, found=value, remedy=remedy)
    return value


def numbers(row: Row, key: str) -> npt.NDArray[np.float64] | None:
    """A column with a list of numbers, in a CSV as JSON; None where it is empty.

    Raises:
        UserError: it holds something else, or a number that is not finite.
    """
    where, values = row
    value = values.get(key)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise UserError(f"{key} is no list of numbers", where=where, found=value, expected="[1.5, 2]") from None
    if value is None:
        return None
    if not isinstance(value, list):
        raise UserError(f"{key} is no list of numbers", where=where, found=value, expected="[1.5, 2]")
    return finite(where, {f"{key}[{place}]": item for place, item in enumerate(value)})


def finite(where: str, values: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    """Values as finite numbers, in their order.

    Raises:
        UserError: one is none; it is named by its key.
    """
    found = []
    for name, value in values.items():
        try:
            number = math.nan if value is None or isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            remedy = "Leave a request that has no answer out, or all of its cells empty"
            raise UserError(f"{name} is no finite number", where=where, found=value, remedy=remedy)
        found.append(number)
    return np.array(found, np.float64)


def refuse_unknown(row: Row, known: Sequence[str]) -> None:
    """Refuse a column that is none of ``known``.

    Raises:
        UserError: there is one.
    """
    where, values = row
    for name in values:
        if name not in known:
            raise UserError(f"unknown column {name!r}", where=where, expected=", ".join(known))
