"""Cells: the points of a grid, one class per kind, each named by what changes its result and by nothing else.

A cell's id is the first 16 hex digits of the SHA-256 of its canonical JSON: stage, the stage's version, its own
identity fields, and the ids of the cells it is computed from. Host, device, batch size, packing and executor are no
fields of a cell and so can't be part of an id. A field that is only needed to do the work says ``identity=False``.

``VERSION`` is raised by hand when a stage's code changes its results; that re-runs the stage's cells and what hangs on
them, and the changelog says so. (A hash of source files would re-run days of work for a comment.)
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from geco_ray.registry import Options

# Of a field that identifies what another field already names, and that nobody wants to read.
FINGERPRINT = {"readable": False}


# Of a field that says by which code a component from outside computes; empty, and then no part of an id, for our own.
CODE = FINGERPRINT | {"code": True}


def runtime_field(default: Any = dataclasses.MISSING) -> Any:
    """A field that the work needs and the result does not depend on."""
    return field(default=default, compare=False, metadata={"identity": False})


@dataclass(frozen=True)
class Cell:
    """Base of all cells. See the module's docstring for what the id is made of."""

    STAGE: ClassVar[str] = ""
    KIND: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1

    @property
    def stage(self) -> str:
        return self.STAGE

    @cached_property
    def id(self) -> str:
        content = [self.STAGE, self.KIND, self.VERSION, self.own(), [parent.id for parent in self.upstream()]]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _identity_fields(self) -> Iterator[tuple[str, Any]]:
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if item.metadata.get("identity", True) and (value or not item.metadata.get("code")):
                yield item.name, value

    def own(self) -> dict[str, Any]:
        """Identity fields that are not cells, as JSON values."""
        return {name: _plain(value) for name, value in self._identity_fields() if not _is_cells(value)}

    def upstream(self) -> tuple[Cell, ...]:
        """The cells this one is computed from, in the order of the fields."""
        found: list[Cell] = []
        for _, value in self._identity_fields():
            if isinstance(value, Cell):
                found.append(value)
            elif _is_cells(value):
                found.extend(value)
        return tuple(found)

    def params(self) -> dict[str, Any]:
        """What a table shows of the cell: its own values over those of the single cells it hangs on."""
        merged: dict[str, Any] = {}
        for _, value in self._identity_fields():
            if isinstance(value, Cell):
                merged |= value.params()
        return merged | self.own() | {"kind": self.KIND}

    def readable(self) -> dict[str, Any]:
        """:meth:`params` without fingerprints and kind: the values that people tell cells apart by."""
        merged: dict[str, Any] = {}
        for name, value in self._identity_fields():
            if isinstance(value, Cell):
                merged |= value.readable()
            elif not _is_cells(value) and type(self).__dataclass_fields__[name].metadata.get("readable", True):
                merged[name] = _plain(value)
        return merged

    def codes(self) -> dict[str, str]:
        """Of the fields marked :data:`CODE` that are not empty, upstream cells' included: name to value."""
        found: dict[str, str] = {}
        for name, value in self._identity_fields():
            if isinstance(value, Cell):
                found |= value.codes()
            elif type(self).__dataclass_fields__[name].metadata.get("code"):
                found[name] = value
        return found

    @property
    def title(self) -> str:
        """One line for people: the values that tell this cell from its neighbours."""
        shown = [str(value) for value in self.readable().values() if value is not None and not isinstance(value, dict)]
        return f"{self.stage} " + " · ".join(shown)


def _plain(value: Any) -> Any:
    if isinstance(value, Options):
        return value.model_dump(mode="json")
    return list(value) if isinstance(value, tuple) else value


def _is_cells(value: Any) -> bool:
    return isinstance(value, Cell) or (isinstance(value, tuple) and bool(value) and isinstance(value[0], Cell))
