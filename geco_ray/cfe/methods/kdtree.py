"""Nearest neighbour: the closest training row that the base model accepts (baseline)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.methods.base import METHODS, Answer, GenerationTask, Prepared, Refused, Scalar
from geco_ray.registry import NoOptions, Profile

if TYPE_CHECKING:
    from sklearn.neighbors import KDTree


class NearestRows:
    """Answers with the Euclidean nearest of a fixed set of rows; the row's position is a column.

    Args:
        rows: the candidates, float32 (m, d), m >= 1.
        row_numbers: their positions in the training matrix, int64 (m,).
        set_up: what preparing found.
    """

    def __init__(self, rows: NDArray[np.float32], row_numbers: NDArray[np.int64], set_up: Mapping[str, Scalar]) -> None:
        from sklearn.neighbors import KDTree

        self._rows, self._numbers, self.set_up = rows, row_numbers, set_up
        self._tree: KDTree = KDTree(rows)

    def generate(self, factuals: NDArray[np.float64], factual_ids: Sequence[int]) -> list[Answer]:
        """The nearest candidate of each factual."""
        if not len(factuals):
            return []
        nearest = self._tree.query(factuals, k=1, return_distance=False)[:, 0]
        return [
            Answer(self._rows[i].astype(np.float64), "found", None, {"training_row": int(self._numbers[i])})
            for i in nearest
        ]


@METHODS.register(
    "kdtree",
    title="KD-tree",
    options=NoOptions,
    profile=Profile(order=4, colour="#707070", marker="s", aims=False, assumes="nothing", certificate="none"),
)
def prepare(task: GenerationTask, options: NoOptions) -> Prepared:
    """Find the training rows with p >= 0.5 (predicted, not labelled) once and index them."""
    accepted = np.flatnonzero(task.model.favourable(task.train_x))
    if not len(accepted):
        return Refused("not_found", "no training row is favourable", {"training_row": None})
    return NearestRows(task.train_x[accepted], accepted, {"candidates": len(accepted)})
