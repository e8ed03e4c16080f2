"""The fixed four-way split: train 50, update 10, validation 10, test 30 per cent, stratified by label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geco_ray.errors import UserError

if TYPE_CHECKING:
    import numpy.typing as npt

SPLIT_SEED = 2026
SMALLEST_CLASS = 20  # rows; below this a tenth of the data holds too few of a class to mean anything


@dataclass(frozen=True)
class Split:
    """Positions (int64, in the order scikit-learn returns them) of the four parts of a table."""

    train: npt.NDArray[np.int64]
    update: npt.NDArray[np.int64]
    val: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]


def four_way_split(labels: npt.NDArray[np.int64], *, where: str) -> Split:
    """Split positions 0..n-1 by three stratified halvings with seed 2026 ("Robust to Which Model Change?", set-up).

    The seed belongs to the data, not to a base model: all base models share one split.

    Raises:
        UserError: one class only, or a class with fewer rows than the split needs.
    """
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise UserError(
            "all rows have one class", where=where, found=int(classes[0]) if len(classes) else None, expected="0 and 1"
        )
    if counts.min() < SMALLEST_CLASS:
        raise UserError(
            f"class {int(classes[counts.argmin()])} has too few rows for a split in four",
            where=where,
            found=int(counts.min()),
            expected=f"at least {SMALLEST_CLASS} rows of each class",
        )
    from sklearn.model_selection import train_test_split

    def cut(positions: npt.NDArray[np.int64], second: float) -> list[npt.NDArray[np.int64]]:
        parts = train_test_split(positions, test_size=second, random_state=SPLIT_SEED, stratify=labels[positions])
        return [np.asarray(part, dtype=np.int64) for part in parts]

    train, remainder = cut(np.arange(len(labels), dtype=np.int64), 0.50)
    update, rest = cut(remainder, 0.80)
    val, test = cut(rest, 0.75)
    return Split(train, update, val, test)
