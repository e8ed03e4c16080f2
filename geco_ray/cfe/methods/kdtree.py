"""Nearest neighbour: the closest training row that the base model accepts (baseline)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.constraints.declared import KINDS, Constraints, honours
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
        constraints: what an answer may not propose; only rows that keep them are candidates of a factual.
    """

    def __init__(
        self,
        rows: NDArray[np.float32],
        row_numbers: NDArray[np.int64],
        set_up: Mapping[str, Scalar],
        constraints: Constraints | None = None,
    ) -> None:
        from sklearn.neighbors import KDTree

        self._rows, self._numbers, self.set_up = rows, row_numbers, set_up
        self._tree: KDTree = KDTree(rows)
        self._constraints = constraints

    def generate(self, factuals: NDArray[np.float64], factual_ids: Sequence[int]) -> list[Answer]:
        """The nearest candidate of each factual."""
        if not len(factuals):
            return []
        if self._constraints is not None:
            return [self._nearest_that_keeps(self._constraints, factual) for factual in factuals]
        nearest = self._tree.query(factuals, k=1, return_distance=False)[:, 0]
        return [
            Answer(self._rows[i].astype(np.float64), "found", None, {"training_row": int(self._numbers[i])})
            for i in nearest
        ]

    def _nearest_that_keeps(self, constraints: Constraints, factual: NDArray[np.float64]) -> Answer:
        """A tree of all rows is no help: which ones are candidates is another question for each factual."""
        rows = self._rows.astype(np.float64)
        kept = np.flatnonzero(constraints.kept(factual, rows))
        if not len(kept):
            return Answer(None, "not_found", "no candidate keeps the constraints", {"training_row": None})
        i = kept[((rows[kept] - factual) ** 2).sum(axis=1).argmin()]
        return Answer(rows[i], "found", None, {"training_row": int(self._numbers[i])})


@METHODS.register(
    "kdtree",
    title="KD-tree",
    options=NoOptions,
    profile=Profile(order=4, colour="#707070", marker="s", aims=False, assumes="nothing", certificate="none"),
)
@honours(*KINDS)
def prepare(task: GenerationTask, options: NoOptions) -> Prepared:
    """Find the training rows with p >= 0.5 (predicted, not labelled) once and index them."""
    accepted = np.flatnonzero(task.model.favourable(task.train_x))
    if not len(accepted):
        return Refused("not_found", "no training row is favourable", {"training_row": None})
    return NearestRows(task.train_x[accepted], accepted, {"candidates": len(accepted)}, task.constraints)
