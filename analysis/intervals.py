"""Intervals over seeds, and whether a lead is decisive.

The interval is the percentile bootstrap of the mean over seeds ("Robust to Which Model Change?"): 10,000 resamples of
the S seed values, whose index matrix depends on the data set and on S alone, so that methods are resampled together.
With five seeds there are only 126 distinct resamples and the interval is too narrow; the reports say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geco_ray.seeds import derive_seed

RESAMPLES = 10_000
FEWEST_SEEDS = 3  # two values have only three resampled means: no lead is called decisive on them


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over ``n`` seeds with its 95 % bootstrap interval; ``low`` and ``high`` are null below two seeds."""

    mean: float | None
    low: float | None
    high: float | None
    n: int

    def overlaps(self, other: Interval) -> bool:
        """Whether the two intervals share a point; true when either of them has none."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return True
        return self.low <= other.high and other.low <= self.high


def resampling_seed(dataset: str) -> int:
    """The seed of a data set's resamples."""
    return derive_seed("bootstrap", dataset)


def bootstrap(values: Sequence[float] | NDArray[np.float64], seed: int) -> Interval:
    """Mean of the finite ``values`` (one per seed) and the 2.5 % and 97.5 % quantiles of its resamples.

    ``seed`` draws the resamples; it is the same for all methods of a data set.
    """
    data = np.asarray(values, dtype=np.float64)
    data = data[np.isfinite(data)]
    if not len(data):
        return Interval(None, None, None, 0)
    if len(data) == 1:
        return Interval(float(data[0]), None, None, 1)
    means = data[_indices(seed, len(data))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(data.mean()), float(low), float(high), len(data))


@lru_cache(maxsize=64)
def _indices(seed: int, size: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, size, size=(RESAMPLES, size))


@dataclass(frozen=True, slots=True)
class Lead:
    """The best of several intervals, and those that are not clearly behind it (``rivals``, best first)."""

    best: str
    interval: Interval
    rivals: tuple[str, ...]
    compared: int

    @property
    def decisive(self) -> bool:
        """The best rests on enough seeds and no other's interval reaches into its own."""
        return not self.rivals and self.interval.n >= FEWEST_SEEDS


def lead(intervals: Mapping[str, Interval], *, largest: bool = True) -> Lead | None:
    """Who leads, and whether decisively; None if nobody has a value. Ties go to the first name in order."""
    known: dict[str, Any] = {name: value for name, value in intervals.items() if value.mean is not None}
    if not known:
        return None
    ranked = sorted(known, key=lambda name: -known[name].mean if largest else known[name].mean)
    best = ranked[0]
    rivals = tuple(name for name in ranked[1:] if known[best].overlaps(known[name]))
    return Lead(best, known[best], rivals, len(known))
