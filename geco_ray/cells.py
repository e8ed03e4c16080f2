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
            if item.metadata.get("identity", True):
                yield item.name, getattr(self, item.name)

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

    @property
    def title(self) -> str:
        """One line for people: the values that tell this cell from its neighbours."""
        hidden = {"data", "encoder_fingerprint", "kind", "options"}
        shown = [
            str(v) for k, v in self.params().items() if k not in hidden and v is not None and not isinstance(v, dict)
        ]
        return f"{self.stage} " + " · ".join(shown)


def _plain(value: Any) -> Any:
    if isinstance(value, Options):
        return value.model_dump(mode="json")
    return list(value) if isinstance(value, tuple) else value


def _is_cells(value: Any) -> bool:
    return isinstance(value, Cell) or (isinstance(value, tuple) and bool(value) and isinstance(value[0], Cell))


# --- GECOBench ---


@dataclass(frozen=True)
class TrainCell(Cell):
    """One classifier: a paradigm trained on one task from one seed (``seed`` is None where nothing is drawn).

    ``encoder`` names what the model starts from: the encoder, or only its tokenizer where the paradigm uses no more.
    """

    STAGE: ClassVar[str] = "train"
    dataset: str
    data: str
    encoder: str
    encoder_fingerprint: str
    paradigm: str
    paradigm_options: Options
    seed: int | None
    protocol: str
    encoder_source: str = runtime_field("")


@dataclass(frozen=True)
class ExplainCell(Cell):
    """One method's attributions for the test sentences of one classifier (all of them, or a seeded sample)."""

    STAGE: ClassVar[str] = "explain"
    VERSION: ClassVar[int] = 2
    model: TrainCell
    method: str
    method_options: Options
    sentences: int | None = None


@dataclass(frozen=True)
class ScoreCell(Cell):
    """The metrics of one explain cell, row by row."""

    STAGE: ClassVar[str] = "score"
    explained: ExplainCell


# --- robust counterfactuals ---


@dataclass(frozen=True)
class BaseCell(Cell):
    """One base model: a network trained on one data set's training part."""

    STAGE: ClassVar[str] = "models"
    KIND: ClassVar[str] = "base"
    dataset: str
    data: str
    base_seed: int
    seeding: str


@dataclass(frozen=True)
class VariantCell(Cell):
    """One changed model: variant ``variant`` (0 to 24) of one change family of one base model."""

    STAGE: ClassVar[str] = "models"
    KIND: ClassVar[str] = "variant"
    base: BaseCell
    family: str
    variant: int


@dataclass(frozen=True)
class CounterfactualCell(Cell):
    """One method's counterfactuals for the rejected test rows of one base model."""

    STAGE: ClassVar[str] = "counterfactuals"
    base: BaseCell
    method: str
    method_options: Options
    protocol: str


@dataclass(frozen=True)
class ProofCell(Cell):
    """Requests ``first`` to ``end`` - 1 of a method that proves its answers: resumed and computed on their own."""

    STAGE: ClassVar[str] = "counterfactuals"
    KIND: ClassVar[str] = "proof"
    base: BaseCell
    method: str
    method_options: Options
    protocol: str
    first: int
    end: int


@dataclass(frozen=True)
class ProvedCell(CounterfactualCell):
    """The counterfactuals of a method that proves its answers, put together from their blocks."""

    KIND: ClassVar[str] = "proved"
    blocks: tuple[ProofCell, ...] = ()


@dataclass(frozen=True)
class ValidityCell(Cell):
    """The counterfactuals of one cell, held fixed and tested on the variants of one change family."""

    STAGE: ClassVar[str] = "validity"
    counterfactuals: CounterfactualCell
    family: str
    variants: tuple[VariantCell, ...]
