"""The distance between a factual and its counterfactual, in units of each feature's spread in the training data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_TINY = 1e-8


def robust_scale(train_x: NDArray[np.float32]) -> NDArray[np.float64]:
    """Median absolute deviation of each feature, float64 (d,), from the standardised training matrix (n, d).

    No 1.4826 factor. A feature whose deviation is at most 1e-8 takes its population standard deviation
    instead, and 1 if that is as small ("Robust to Which Model Change?", section on proximity).
    """
    x = np.asarray(train_x)
    scale = np.median(np.abs(x - np.median(x, axis=0)), axis=0).astype(np.float64)
    spread = x.std(axis=0).astype(np.float64)
    scale = np.where(scale > _TINY, scale, spread)
    return np.where(scale > _TINY, scale, 1.0)


def mean_scaled_l1(
    points: NDArray[np.float64], factuals: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(1/d) sum_j |point_j - factual_j| / scale_j for each pair of rows; inputs (k, d) and (d,), output (k,)."""
    difference = np.abs(np.asarray(points, dtype=np.float64) - np.asarray(factuals, dtype=np.float64))
    return np.asarray((difference / scale).mean(axis=1), dtype=np.float64)
