"""How well a word attribution s >= 0 finds the truth h in {0, 1}: mass accuracy and five ranking measures.

Every measure is in [0, 1], higher is better, and takes all rows of a table at once. "Chance" is the expectation for
s drawn at random and exchangeable over the n words, of which k are truth. A measure that is not defined for a row is
NaN in the array and null with a reason in a table; it is never replaced by a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

EMPTY_TRUTH = "empty_truth"
FULL_TRUTH = "full_truth"
ZERO_ATTRIBUTION = "zero_attribution"
NON_FINITE_ATTRIBUTION = "non_finite_attribution"

RANKING_MEASURES = ("roc_auc", "average_precision", "pr_auc", "precision_specificity", "top_k_precision")


@dataclass(frozen=True, eq=False)
class Rows:
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
    def of(scores: Sequence[npt.ArrayLike], truths: Sequence[npt.ArrayLike]) -> Rows:
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
        return Rows(score, np.concatenate([*truth_list, np.zeros(0, np.bool_)])[kept], row, len(lengths), finite)

    def sum(self, values: npt.NDArray[np.generic]) -> FloatArray:
        """Sum per sentence."""
        total: FloatArray = np.bincount(self.row, values.astype(np.float64), minlength=self.count).astype(np.float64)
        return total

    def reasons(self) -> tuple[list[str | None], list[str | None]]:
        """Per sentence, why mass accuracy and why the ranking measures are not defined; None where they are."""
        words, positives = self.sum(np.ones_like(self.score)), self.sum(self.truth)
        empty, full, zero = positives == 0, positives == words, self.sum(self.score) == 0
        mass = [EMPTY_TRUTH if e else ZERO_ATTRIBUTION if z else None for e, z in zip(empty, zero, strict=True)]
        ranking = [EMPTY_TRUTH if e else FULL_TRUTH if f else None for e, f in zip(empty, full, strict=True)]
        for number in np.flatnonzero(~self.finite).tolist():
            mass[number] = ranking[number] = NON_FINITE_ATTRIBUTION
        return mass, ranking


def mass_accuracy(rows: Rows) -> FloatArray:
    """Share of the attribution that lies on truth words: sum(s h) / sum(s) (GECOBench, mass accuracy).

    1 when all mass is on truth words. Chance: k / n. NaN for an empty truth and for all-zero attributions.
    """
    total, positives = rows.sum(rows.score), rows.sum(rows.truth)
    on_truth = rows.sum(rows.score * rows.truth)
    defined = (total > 0) & (positives > 0)
    return np.where(defined, on_truth / np.where(defined, total, 1.0), np.nan)


@dataclass(frozen=True, eq=False)
class _Sweep:
    """Counts at each distinct threshold of each sentence, from the highest down; words at or above it are predicted."""

    row: IntArray
    true_positive: FloatArray
    predicted: FloatArray
    first: npt.NDArray[np.bool_]
    positives: FloatArray
    negatives: FloatArray
    defined: npt.NDArray[np.bool_]

    def before(self, values: FloatArray, start: float) -> FloatArray:
        """``values`` of the next higher threshold; ``start`` at the highest."""
        return np.where(self.first, start, np.concatenate([[start], values[:-1]])) if len(values) else values

    def total(self, values: FloatArray) -> FloatArray:
        """Sum over a sentence's thresholds, NaN where the measures are not defined."""
        return np.where(self.defined, np.bincount(self.row, values, minlength=len(self.defined)), np.nan)


def _sweep(rows: Rows) -> _Sweep:
    order = np.lexsort((-rows.score, rows.row))
    score, truth, row = rows.score[order], rows.truth[order].astype(np.float64), rows.row[order]
    words, positives = rows.sum(np.ones_like(rows.score)), rows.sum(rows.truth)
    start = np.searchsorted(row, np.arange(rows.count))
    running = np.concatenate([[0.0], np.cumsum(truth)])
    true_positive = running[1:] - running[start[row]]
    predicted = np.arange(1, len(row) + 1) - start[row]
    last = np.ones(len(row), np.bool_)  # of each run of equal scores in a sentence
    last[:-1] = (row[1:] != row[:-1]) | (score[1:] != score[:-1])
    row = row[last]
    first = np.ones(len(row), np.bool_)
    first[1:] = row[1:] != row[:-1]
    return _Sweep(
        row,
        true_positive[last],
        predicted[last].astype(np.float64),
        first,
        positives,
        words - positives,
        (positives > 0) & (positives < words),
    )


def roc_auc(rows: Rows) -> FloatArray:
    """Area under the ROC curve of s against h: chance that a truth word scores above another one, ties half.

    Chance: 1/2. NaN when all words, or none, are truth.
    """
    sweep = _sweep(rows)
    false_positive = sweep.predicted - sweep.true_positive
    width = false_positive - sweep.before(false_positive, 0.0)
    height = (sweep.true_positive + sweep.before(sweep.true_positive, 0.0)) / 2
    area = sweep.total(width * height)
    return area / np.where(sweep.defined, sweep.positives * sweep.negatives, 1.0)


def average_precision(rows: Rows) -> FloatArray:
    """Sum over thresholds of (recall gained) * precision.

    Chance: above k / n, and close to it for long sentences. NaN as for :func:`roc_auc`.
    """
    sweep = _sweep(rows)
    gained = sweep.true_positive - sweep.before(sweep.true_positive, 0.0)
    total = sweep.total(gained * sweep.true_positive / sweep.predicted)
    return total / np.where(sweep.defined, sweep.positives, 1.0)


def pr_auc(rows: Rows) -> FloatArray:
    """Trapezoid area under the precision-recall curve, begun at recall 0 with precision 1.

    Chance: no closed form; below the average precision for random scores. NaN as for :func:`roc_auc`.
    """
    sweep = _sweep(rows)
    precision = sweep.true_positive / sweep.predicted
    gained = sweep.true_positive - sweep.before(sweep.true_positive, 0.0)
    total = sweep.total(gained * (precision + sweep.before(precision, 1.0)) / 2)
    return total / np.where(sweep.defined, sweep.positives, 1.0)


def precision_specificity(rows: Rows) -> FloatArray:
    """Precision at the lowest threshold whose specificity, 1 - FP / (n - k), exceeds 1/2; 0 if there is none.

    Chance: about k / n. NaN as for :func:`roc_auc`.
    """
    sweep = _sweep(rows)
    false_positive = sweep.predicted - sweep.true_positive
    specific = false_positive < 0.5 * sweep.negatives[sweep.row]
    # Specificity only falls from threshold to threshold, so the lowest specific one is the last one.
    lowest = specific & np.concatenate([~specific[1:] | sweep.first[1:], [True]])[: len(specific)]
    return sweep.total(np.where(lowest, sweep.true_positive / sweep.predicted, 0.0))


def top_k_precision(rows: Rows, rule: Literal["overlap", "mask_as_index"] = "overlap") -> FloatArray:
    """Share of the k highest words that are truth, k the number of truth words.

    Ties at the border count in expectation. Chance: k / n. NaN as for :func:`roc_auc`.

    ``mask_as_index`` is the published computation, which takes the mask's values 0 and 1 for positions: with the
    positions sorted by falling score, it compares the two highest words with the sentence's first two. Its sort leaves
    ties to the processor; ours is the mean of the earlier word first and the later word first. Chance: 2 / n.
    """
    if rule == "mask_as_index":
        return _mask_as_index(rows)
    sweep = _sweep(rows)
    earlier, earlier_hits = sweep.before(sweep.predicted, 0.0), sweep.before(sweep.true_positive, 0.0)
    size, hits = sweep.predicted - earlier, sweep.true_positive - earlier_hits
    taken = np.clip(sweep.positives[sweep.row] - earlier, 0.0, size)
    return sweep.total(hits * taken / size) / np.where(sweep.defined, sweep.positives, 1.0)


def _mask_as_index(rows: Rows) -> FloatArray:
    """Share of the first two words among the two highest: as an index, a mask with both values picks places 0 and 1."""
    words, positives = rows.sum(np.ones_like(rows.score)), rows.sum(rows.truth)
    defined = (positives > 0) & (positives < words)  # so there are two words at least
    start = np.searchsorted(rows.row, np.arange(rows.count))
    position = np.arange(len(rows.row)) - start[rows.row]
    hits = np.zeros(rows.count)
    for tie in (position, -position):
        order = np.lexsort((tie, -rows.score, rows.row))
        hits += rows.sum((position < 2) & (position[order] < 2))  # rank in the sentence, place in the sentence
    return np.where(defined, hits / 4, np.nan)
