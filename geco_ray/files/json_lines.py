"""Strict JSON, whole or a value a line: a repeated key is refused instead of the last one kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from geco_ray.errors import UserError


def read_json_lines(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """Each line of ``text`` as (line number, value).

    Raises:
        UserError: a blank line, invalid JSON or a repeated key, with the line.
    """
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    for number, line in enumerate(lines, start=1):
        where = f"{name}:{number}"
        if not line.strip():
            raise UserError("the line is blank", where=where, remedy="Delete it.")
        try:
            yield number, _load(line, where)
        except json.JSONDecodeError as error:
            raise UserError(f"invalid JSON at column {error.colno}: {error.msg}", where=where) from None


def read_json(text: str, name: str) -> Any:
    """The one value in ``text``.

    Raises:
        UserError: invalid JSON, with the line, or a repeated key.
    """
    try:
        return _load(text, name)
    except json.JSONDecodeError as error:
        raise UserError(f"invalid JSON: {error.msg}", where=f"{name}:{error.lineno}") from None


def _load(text: str, where: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=partial(_table, where), parse_constant=partial(_no_number, where))
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError):  # ValueError: a number of thousands of digits
        raise UserError("invalid JSON: nested too deeply, or too long a number", where=where) from None


def _table(where: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise UserError(f"the key {key!r} is given twice", where=where, remedy="Keep one of them")
        table[key] = value
    return table


def _no_number(where: str, name: str) -> Any:
    raise UserError(f"invalid JSON: {name} is no number of JSON", where=where)
