"""The papers' intervals over seeds, written into tables; no sentence rests on them (see ``analysis.comparison``).

The interval is the percentile bootstrap of the mean over seeds ("Robust to Which Model Change?"): 10,000 resamples of
the S seed values, whose index matrix depends on the data set and on S alone, so that methods are resampled together.
With five seeds there are only 126 distinct resamples, with three the interval is [min, max]: it is too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from geco_ray.seeds import derive_seed

RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over ``n`` seeds with its 95 % bootstrap interval; ``low`` and ``high`` are null below two seeds."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


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
