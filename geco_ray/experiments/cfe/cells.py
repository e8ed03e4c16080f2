"""Robust counterfactuals' cells: models, counterfactuals (whole, or proved block by block), and their validity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from geco_ray.cells import CODE, FINGERPRINT, Cell
from geco_ray.registry import Options


@dataclass(frozen=True)
class BaseCell(Cell):
    """One base model: a network trained on one data set's training part."""

    STAGE: ClassVar[str] = "models"
    KIND: ClassVar[str] = "base"
    VERSION: ClassVar[int] = 2
    dataset: str
    data: str = field(metadata=FINGERPRINT)
    base_seed: int
    seeding: str


@dataclass(frozen=True)
class VariantCell(Cell):
    """One changed model: variant ``variant`` (0 to 24) of one change family of one base model."""

    STAGE: ClassVar[str] = "models"
    KIND: ClassVar[str] = "variant"
    VERSION: ClassVar[int] = 2
    base: BaseCell
    family: str
    variant: int
    family_code: str = field(default="", kw_only=True, metadata=CODE)


@dataclass(frozen=True)
class CounterfactualCell(Cell):
    """One method's counterfactuals for the rejected test rows of one base model."""

    STAGE: ClassVar[str] = "counterfactuals"
    VERSION: ClassVar[int] = 2
    base: BaseCell
    method: str
    method_options: Options
    protocol: str
    method_code: str = field(default="", kw_only=True, metadata=CODE)


@dataclass(frozen=True)
class ProofCell(Cell):
    """Requests ``first`` to ``end`` - 1 of a method that proves its answers: resumed and computed on their own."""

    STAGE: ClassVar[str] = "counterfactuals"
    KIND: ClassVar[str] = "proof"
    VERSION: ClassVar[int] = 2
    base: BaseCell
    method: str
    method_options: Options
    protocol: str
    first: int
    end: int
    method_code: str = field(default="", kw_only=True, metadata=CODE)


@dataclass(frozen=True)
class ProvedCell(CounterfactualCell):
    """The counterfactuals of a method that proves its answers, put together from their blocks."""

    KIND: ClassVar[str] = "proved"
    blocks: tuple[ProofCell, ...] = ()


@dataclass(frozen=True)
class ValidityCell(Cell):
    """The counterfactuals of one cell, held fixed and tested on the variants of one change family."""

    STAGE: ClassVar[str] = "validity"
    VERSION: ClassVar[int] = 2
    counterfactuals: CounterfactualCell
    family: str
    variants: tuple[VariantCell, ...]
