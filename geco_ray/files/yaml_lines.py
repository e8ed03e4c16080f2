"""Plain values that remember the line they stand on, read from YAML or from JSON lines.

The labelling format is checked after reading, so each value must be able to say where it came from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from geco_ray.errors import UserError


class Text(str):
    """A scalar with its line; YAML types are not guessed, so a word such as ``no`` or ``1`` stays a word."""

    __slots__ = ("line",)
    line: int


class Sequence(list[Any]):
    """A list with its line."""

    __slots__ = ("line",)
    line: int


class Table(dict[str, Any]):
    """A mapping with its line and string keys."""

    __slots__ = ("line",)
    line: int


def line_of(value: object, default: int) -> int:
    """The line of ``value``, or ``default`` when it carries none."""
    return getattr(value, "line", default)


def read_yaml(text: str, name: str) -> Any:
    """The single document in ``text`` as located values.

    Raises:
        UserError: invalid YAML, a repeated key, an alias or a key that is not a word, with the line.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        raise UserError(f"invalid YAML: {error.problem or error.context}", where=where) from None
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        raise UserError(f"invalid YAML: {error.reason}", where=f"{name}:{line}") from None
    except RecursionError:
        raise UserError("invalid YAML: nested too deeply", where=name) from None
    if node is None:
        raise UserError("the file is empty", where=name)
    return _located(node, name, set())


def _located(node: Any, name: str, seen: set[int]) -> Any:
    line = node.start_mark.line + 1
    if id(node) in seen:
        raise UserError("anchors and aliases are not allowed here", where=f"{name}:{line}")
    seen.add(id(node))
    value: Text | Sequence | Table
    if isinstance(node.value, str):
        value = Text(node.value)
    elif node.id == "sequence":
        value = Sequence(_located(item, name, seen) for item in node.value)
    else:
        value = Table()
        for key_node, item in node.value:
            key = _located(key_node, name, seen)
            if not isinstance(key, str):
                raise UserError("a key must be a word", where=f"{name}:{key_node.start_mark.line + 1}")
            if key in value:
                raise UserError(f"the key {key!r} stands twice", where=f"{name}:{line_of(key, line)}")
            value[key] = _located(item, name, seen)
    value.line = line
    return value


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
            yield number, json.loads(line, object_pairs_hook=partial(_table, where))
        except json.JSONDecodeError as error:
            raise UserError(f"invalid JSON at column {error.colno}: {error.msg}", where=where) from None
        except (RecursionError, ValueError):  # ValueError: a number of thousands of digits
            raise UserError("invalid JSON: nested too deeply, or too long a number", where=where) from None


def _table(where: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise UserError(f"the key {key!r} stands twice", where=where)
        table[key] = value
    return table
