"""The distance between a factual and its counterfactual, in units of each feature's spread in the training data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from geco_ray.cfe.data.categories import Group

_TINY = 1e-8
SAME_CATEGORY = 1e-4
"""Differences in the scaled space up to which a feature of 0 and 1 is unchanged; a change is at least 2."""


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


def mean_over_columns(
    points: NDArray[np.float64], factuals: NDArray[np.float64], scale: NDArray[np.float64], groups: Sequence[Group]
) -> NDArray[np.float64]:
    """The distance over the columns of the table: as :func:`mean_scaled_l1`, but 1 for a changed category.

    Args:
        points: rows (k, d).
        factuals: rows (k, d) or (d,).
        scale: of each feature, float64 (d,).
        groups: the columns of categories; without any this is :func:`mean_scaled_l1`.
    """
    if not groups:
        return mean_scaled_l1(points, factuals, scale)
    difference = np.abs(np.asarray(points, dtype=np.float64) - np.asarray(factuals, dtype=np.float64))
    number = np.ones(difference.shape[1], dtype=np.bool_)
    total = np.zeros(len(difference))
    for group in groups:
        number[group.columns] = False
        # An answer that went through float32 is the same category.
        total += (difference[:, group.columns] > SAME_CATEGORY).any(axis=1)
    total += (difference[:, number] / scale[number]).sum(axis=1)
    return np.asarray(total / (number.sum() + len(groups)), dtype=np.float64)


def mean_scaled_l1(
    points: NDArray[np.float64], factuals: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(1/d) sum_j |point_j - factual_j| / scale_j for each pair of rows; inputs (k, d) and (d,), output (k,)."""
    difference = np.abs(np.asarray(points, dtype=np.float64) - np.asarray(factuals, dtype=np.float64))
    return np.asarray((difference / scale).mean(axis=1), dtype=np.float64)
