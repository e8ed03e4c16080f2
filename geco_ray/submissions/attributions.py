"""Submitted attributions: a classifier, a row of its task's test split, one score per word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from geco_ray.errors import UserError
from geco_ray.submissions.cards import SubmissionCard, read_card, require_kind
from geco_ray.submissions.rows import numbers, read_rows, refuse_unknown, text, whole_number

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AttributionFile:
    """A file's rows: ``scores``, classifier to row of the test split to scores (words,), None where there are none."""

    path: Path
    card: SubmissionCard
    scores: Mapping[str, Mapping[int, Scores | None]]


@lru_cache(maxsize=4)
def read_attributions(path: Path, content: str = "") -> AttributionFile:
    """Read and check a file of attributions.

    Args:
        path: a JSONL or Parquet file with its card. content: its identity; only so that a changed file is read again.

    Raises:
        UserError: a fault of card or file, with its place.
    """
    card = read_card(path)
    require_kind(card, "attributions", path)
    scores: dict[str, dict[int, Scores | None]] = {}
    places: dict[tuple[str, int], str] = {}
    for line in read_rows(path):
        refuse_unknown(line, ("model", "row", "scores"))
        model, row = text(line, "model", card.model), whole_number(line, "row")
        if (first := places.setdefault((model, row), line[0])) != line[0]:
            raise UserError(f"row {row} is explained twice", where=line[0], found=first, remedy="Keep one")
        scores.setdefault(model, {})[row] = numbers(line, "scores")
    if not scores:
        raise UserError("the submission has no row", where=str(path), remedy="Give one row per explained sentence")
    return AttributionFile(path, card, scores)
