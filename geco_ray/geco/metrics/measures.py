"""How well a word attribution s >= 0 finds the truth h in {0, 1}: mass accuracy and five ranking measures, as data.

:data:`METRICS` holds every metric with its range, direction, value under chance and null rule; the functions below
compute them for all rows of a table at once. "Chance" is the expectation for s drawn at random and exchangeable over
the n words, of which k are truth. A metric that is not defined for a row is NaN in the array and null with a reason in
a table; it is never replaced by a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from geco_ray.geco.protocol import Protocol
from geco_ray.geco.scored import (
    EMPTY_TRUTH,
    FULL_TRUTH,
    NON_FINITE_ATTRIBUTION,
    REASONS,
    ZERO_ATTRIBUTION,
    FloatArray,
    IntArray,
    ScoredRows,
)


def mass_accuracy(rows: ScoredRows) -> FloatArray:
    """Share of the attribution that lies on truth words: sum(s h) / sum(s) (GECOBench, mass accuracy)."""
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


def _sweep(rows: ScoredRows) -> _Sweep:
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


def roc_auc(rows: ScoredRows) -> FloatArray:
    """Area under the ROC curve of s against h: chance that a truth word scores above another one, ties half."""
    sweep = _sweep(rows)
    false_positive = sweep.predicted - sweep.true_positive
    width = false_positive - sweep.before(false_positive, 0.0)
    height = (sweep.true_positive + sweep.before(sweep.true_positive, 0.0)) / 2
    area = sweep.total(width * height)
    return area / np.where(sweep.defined, sweep.positives * sweep.negatives, 1.0)


def average_precision(rows: ScoredRows) -> FloatArray:
    """Sum over thresholds of (recall gained) * precision."""
    sweep = _sweep(rows)
    gained = sweep.true_positive - sweep.before(sweep.true_positive, 0.0)
    total = sweep.total(gained * sweep.true_positive / sweep.predicted)
    return total / np.where(sweep.defined, sweep.positives, 1.0)


def pr_auc(rows: ScoredRows) -> FloatArray:
    """Trapezoid area under the precision-recall curve, begun at recall 0 with precision 1."""
    sweep = _sweep(rows)
    precision = sweep.true_positive / sweep.predicted
    gained = sweep.true_positive - sweep.before(sweep.true_positive, 0.0)
    total = sweep.total(gained * (precision + sweep.before(precision, 1.0)) / 2)
    return total / np.where(sweep.defined, sweep.positives, 1.0)


def precision_specificity(rows: ScoredRows) -> FloatArray:
    """Precision at the lowest threshold whose specificity, 1 - FP / (n - k), exceeds 1/2; 0 if there is none."""
    sweep = _sweep(rows)
    false_positive = sweep.predicted - sweep.true_positive
    specific = false_positive < 0.5 * sweep.negatives[sweep.row]
    # Specificity only falls from threshold to threshold, so the lowest specific one is the last one.
    lowest = specific & np.concatenate([~specific[1:] | sweep.first[1:], [True]])[: len(specific)]
    return sweep.total(np.where(lowest, sweep.true_positive / sweep.predicted, 0.0))


def top_k_precision(rows: ScoredRows, rule: Literal["overlap", "mask_as_index"] = "overlap") -> FloatArray:
    """Share of the k highest words that are truth, k the number of truth words.

    Ties at the border count in expectation. ``mask_as_index`` is the published computation, which takes the mask's
    values 0 and 1 for positions: with the positions sorted by falling score, it compares the two highest words with the
    sentence's first two. Its sort leaves ties to the processor; ours is the mean of the earlier word first and the
    later word first.
    """
    if rule == "mask_as_index":
        return _mask_as_index(rows)
    sweep = _sweep(rows)
    earlier, earlier_hits = sweep.before(sweep.predicted, 0.0), sweep.before(sweep.true_positive, 0.0)
    size, hits = sweep.predicted - earlier, sweep.true_positive - earlier_hits
    taken = np.clip(sweep.positives[sweep.row] - earlier, 0.0, size)
    return sweep.total(hits * taken / size) / np.where(sweep.defined, sweep.positives, 1.0)


def _mask_as_index(rows: ScoredRows) -> FloatArray:
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


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a row; its values lie between ``low`` and ``high``.

    Attributes:
        name: the column in tables. title: what people read. formula: in words and signs, with s, h, n and k as above.
        compute: values per row (count,) under a protocol, NaN where undefined.
        chance: the value of k and n that it has in the mean over random orders of the words, without ties; for
            top-k precision that of ``corrected``.
        reasons: when a row has no value, as in :data:`REASONS`.
        better: the direction of better values.
    """

    name: str
    title: str
    formula: str
    compute: Callable[[ScoredRows, Protocol], FloatArray]
    chance: Callable[[int, int], float]
    reasons: tuple[str, ...] = (NON_FINITE_ATTRIBUTION, EMPTY_TRUTH, FULL_TRUTH)
    low: float = 0.0
    high: float = 1.0
    better: Literal["higher", "lower"] = "higher"

    @property
    def null_when(self) -> str:
        """When a row has no value, in words."""
        return ", or ".join(REASONS[reason] for reason in self.reasons)


def _average_precision_by_chance(k: int, n: int) -> float:
    """The word at rank i is truth with k / n, and then each of the i - 1 above it with (k - 1) / (n - 1)."""
    harmonic = sum(1 / rank for rank in range(1, n + 1))
    return (harmonic + (k - 1) / (n - 1) * (n - harmonic)) / n


def _pr_auc_by_chance(k: int, n: int) -> float:
    """The mean of the precisions at a truth word's rank and just above it, where it is (k - 1) / (n - 1), first 1."""
    return (_average_precision_by_chance(k, n) + k / n) / 2


def _precision_specificity_by_chance(k: int, n: int) -> float:
    """Over t, the truth words above the first word that is one false positive too many (negative hypergeometric)."""
    false = math.ceil((n - k) / 2) - 1
    ways = [math.comb(t + false, false) * math.comb(n - t - false - 1, k - t) for t in range(k + 1)]
    return sum(t / (t + false) * way for t, way in enumerate(ways) if t) / math.comb(n, k)


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric(
                name="mass_accuracy",
                title="Mass accuracy",
                formula="sum(s h) / sum(s)",
                compute=lambda rows, protocol: mass_accuracy(rows),
                chance=lambda k, n: k / n,
                reasons=(NON_FINITE_ATTRIBUTION, EMPTY_TRUTH, ZERO_ATTRIBUTION),
            ),
            Metric(
                name="roc_auc",
                title="ROC AUC",
                formula="share of the pairs of a truth word and another in which the truth word has the larger s",
                compute=lambda rows, protocol: roc_auc(rows),
                chance=lambda k, n: 1 / 2,
            ),
            Metric(
                name="average_precision",
                title="Average precision",
                formula="sum over thresholds of (recall gained) x precision",
                compute=lambda rows, protocol: average_precision(rows),
                chance=_average_precision_by_chance,
            ),
            Metric(
                name="pr_auc",
                title="PR AUC",
                formula="trapezoid area under precision over recall, from recall 0 and precision 1",
                compute=lambda rows, protocol: pr_auc(rows),
                chance=_pr_auc_by_chance,
            ),
            Metric(
                name="precision_specificity",
                title="Precision at specificity 1/2",
                formula="precision at the lowest threshold whose specificity exceeds 1/2, or 0",
                compute=lambda rows, protocol: precision_specificity(rows),
                chance=_precision_specificity_by_chance,
            ),
            Metric(
                name="top_k_precision",
                title="Top-k precision",
                formula="share of truth among the k words of largest s",
                compute=lambda rows, protocol: top_k_precision(rows, protocol.top_k),
                chance=lambda k, n: k / n,
            ),
        )
    }
)
"""All metrics by name, in the order of the columns of a score table."""

RANKING_MEASURES = tuple(name for name, metric in METRICS.items() if FULL_TRUTH in metric.reasons)
"""Those that see only the order of the words, and need words of both kinds."""
