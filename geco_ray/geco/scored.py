"""Rows with a score and a truth for each word, laid end to end, and why a row may have no value of a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

EMPTY_TRUTH = "empty_truth"
FULL_TRUTH = "full_truth"
ZERO_ATTRIBUTION = "zero_attribution"
NON_FINITE_ATTRIBUTION = "non_finite_attribution"

REASONS: Mapping[str, str] = MappingProxyType(
    {
        NON_FINITE_ATTRIBUTION: "an attribution is not finite",
        EMPTY_TRUTH: "no word is truth",
        FULL_TRUTH: "every word is truth",
        ZERO_ATTRIBUTION: "all attributions are zero",
    }
)
"""Why a row may have no value, in words. Where two hold, the earlier one is given."""


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Sentences laid end to end: ``score`` and ``truth`` (words,), and the sentence of each word ``row`` (words,).

    ``finite`` (count,) is False for a sentence with a NaN or infinite score. It has no words here, as if its truth were
    empty, so that no measure is defined for it.
    """

    score: FloatArray
    truth: npt.NDArray[np.bool_]
    row: IntArray
    count: int
    finite: npt.NDArray[np.bool_]

    @staticmethod
    def of(scores: Sequence[npt.ArrayLike], truths: Sequence[npt.ArrayLike]) -> ScoredRows:
        """Join one array of scores and one of 0/1 per sentence.

        Raises:
            ValueError: lengths differ, or a score is negative.
        """
        score_list = [np.asarray(score, np.float64) for score in scores]
        truth_list = [np.asarray(truth, np.bool_) for truth in truths]
        if [len(score) for score in score_list] != [len(truth) for truth in truth_list]:
            raise ValueError("attribution and truth differ in length")
        finite = np.array([bool(np.isfinite(score).all()) for score in score_list], np.bool_)
        lengths = np.array([len(part) for part in score_list], np.int64)
        kept = np.repeat(finite, lengths)
        score = np.concatenate([*score_list, np.zeros(0)])[kept]
        if (score < 0).any():
            raise ValueError("attributions must not be negative")
        row = np.repeat(np.arange(len(lengths)), lengths)[kept]
        return ScoredRows(score, np.concatenate([*truth_list, np.zeros(0, np.bool_)])[kept], row, len(lengths), finite)

    def sum(self, values: npt.NDArray[np.generic]) -> FloatArray:
        """Sum per sentence."""
        total: FloatArray = np.bincount(self.row, values.astype(np.float64), minlength=self.count).astype(np.float64)
        return total

    def why_null(self, reasons: Sequence[str]) -> list[str | None]:
        """Per sentence, the first of ``reasons`` (in the order of :data:`REASONS`) that holds; None if none does."""
        words, positives = self.sum(np.ones_like(self.score)), self.sum(self.truth)
        holds = {
            NON_FINITE_ATTRIBUTION: ~self.finite,
            EMPTY_TRUTH: positives == 0,
            FULL_TRUTH: positives == words,
            ZERO_ATTRIBUTION: self.sum(self.score) == 0,
        }
        found: list[str | None] = [None] * self.count
        for reason in reversed([reason for reason in REASONS if reason in reasons]):
            for number in np.flatnonzero(holds[reason]).tolist():
                found[number] = reason
        return found
