"""Sparsity and plausibility of counterfactuals, beside their proximity: what changed, and whether such people exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from geco_ray.cfe.distance import SAME_CATEGORY

if TYPE_CHECKING:
    from geco_ray.cfe.data.categories import Group
    from geco_ray.cfe.methods.base import GenerationTask

NEIGHBOURS = 5


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as the distance sees them: ``numbers`` in units of their spread, float64 (n, p), ``codes`` of categories."""

    numbers: NDArray[np.float64]
    codes: NDArray[np.int64]

    def distances(self, other: Rows, row: int) -> NDArray[np.float64]:
        """From a row of ``other`` to each of these: mean over columns, 1 for another category; float64 (n,)."""
        total = np.abs(self.numbers - other.numbers[row]).sum(axis=1) + (self.codes != other.codes[row]).sum(axis=1)
        return np.asarray(total / (self.numbers.shape[1] + self.codes.shape[1]), dtype=np.float64)


def plausibility(points: Rows, known: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How near the points are to known rows, and how that compares with how near these are to each other.

    Args:
        points: counterfactuals.
        known: training rows of the wanted class.

    Returns:
        ``nearest``: the mean distance to the :data:`NEIGHBOURS` nearest known rows (fewer if there are fewer).
        ``relative``: that, divided by the mean of the same measure of these rows among the others: about 1 where a
        point lies as densely as its neighbours, large where it stands alone, NaN where they lie on each other or
        there are fewer than two. Both float64 (points,), NaN without known rows.
    """
    own: dict[int, float] = {}

    def among_the_others(row: int) -> float:
        if row not in own:
            gaps = known.distances(known, row)
            gaps[row] = np.inf
            own[row] = float(np.sort(gaps)[: min(NEIGHBOURS, len(gaps) - 1)].mean()) if len(gaps) > 1 else np.nan
        return own[row]

    nearest, relative = np.full(len(points.numbers), np.nan), np.full(len(points.numbers), np.nan)
    for i in range(len(nearest) if len(known.numbers) else 0):
        gaps = known.distances(points, i)
        closest = np.argsort(gaps, kind="stable")[:NEIGHBOURS]
        nearest[i] = gaps[closest].mean()
        usual = float(np.mean([among_the_others(int(row)) for row in closest]))
        relative[i] = nearest[i] / usual if usual > 0 else np.nan
    return nearest, relative


def quality_table(task: GenerationTask, made: pa.Table) -> pa.Table:
    """Sparsity and plausibility of generated counterfactuals.

    Args:
        task: the task that they were generated for.
        made: what :func:`geco_ray.cfe.generation.generate` gave.

    Returns:
        A row per request in the given order, null where nothing was generated: ``factual_id``; ``changed_columns``,
        how many columns of the table differ from the factual (by more than 1e-4 in the scaled space);
        ``nearest_favourable`` and ``relative_distance`` (see :func:`plausibility`), with the training rows of class 1.
    """
    points = made["counterfactual"].to_pylist()
    there = [i for i, point in enumerate(points) if point is not None]
    changed: list[int | None] = [None] * len(points)
    nearest, relative = np.full(len(points), np.nan), np.full(len(points), np.nan)
    if there:
        rows = np.array([points[i] for i in there], dtype=np.float64)
        factuals = np.array(made["factual"].take(pa.array(there)).to_pylist(), dtype=np.float64)
        differs = np.abs(rows - factuals) > SAME_CATEGORY
        columns = [differs[:, _numbers(task)], *(differs[:, g.columns].any(axis=1, keepdims=True) for g in task.groups)]
        for i, count in zip(there, np.concatenate(columns, axis=1).sum(axis=1).tolist(), strict=True):
            changed[i] = count
        wanted = task.train_x[task.train_y == 1].astype(np.float64)
        nearest[there], relative[there] = plausibility(_rows(task, rows), _rows(task, wanted))
    return pa.table(
        {
            "factual_id": made["factual_id"],
            "changed_columns": pa.array(changed, pa.int64()),
            "nearest_favourable": pa.array(nearest, from_pandas=True),
            "relative_distance": pa.array(relative, from_pandas=True),
        }
    )


def _numbers(task: GenerationTask) -> NDArray[np.bool_]:
    number = np.ones(task.train_x.shape[1], dtype=np.bool_)
    for group in task.groups:
        number[group.columns] = False
    return number


def _rows(task: GenerationTask, x: NDArray[np.float64]) -> Rows:
    number = _numbers(task)
    return Rows(x[:, number] / task.mad[number], _codes(x, task.groups))


def _codes(x: NDArray[np.float64], groups: Sequence[Group]) -> NDArray[np.int64]:
    """The category that is strongest in each group; half a clerk is one of the two."""
    codes = [x[:, group.columns].argmax(axis=1) for group in groups]
    return np.array(codes, dtype=np.int64).reshape(len(groups), len(x)).T
