"""GECOBench's cells: a classifier, one method's attributions for it, and their metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from geco_ray.cells import CODE, FINGERPRINT, Cell, runtime_field
from geco_ray.registry import Options


@dataclass(frozen=True)
class TrainCell(Cell):
    """One classifier: a paradigm trained on one task from one seed (``seed`` is None where nothing is drawn).

    ``encoder`` names what the model starts from: the encoder, or only its tokenizer where the paradigm uses no more.
    """

    STAGE: ClassVar[str] = "train"
    VERSION: ClassVar[int] = 3
    dataset: str
    data: str = field(metadata=FINGERPRINT)
    encoder: str
    encoder_fingerprint: str = field(metadata=FINGERPRINT)
    paradigm: str
    paradigm_options: Options
    seed: int | None
    protocol: str
    encoder_source: str = runtime_field("")
    paradigm_code: str = field(default="", kw_only=True, metadata=CODE)


@dataclass(frozen=True)
class ExplainCell(Cell):
    """One method's attributions for the test sentences of one classifier (all of them, or a seeded sample)."""

    STAGE: ClassVar[str] = "explain"
    VERSION: ClassVar[int] = 3
    model: TrainCell
    method: str
    method_options: Options
    sentences: int | None = None
    method_code: str = field(default="", kw_only=True, metadata=CODE)


@dataclass(frozen=True)
class ScoreCell(Cell):
    """The metrics of one explain cell, row by row."""

    STAGE: ClassVar[str] = "score"
    VERSION: ClassVar[int] = 3
    explained: ExplainCell
