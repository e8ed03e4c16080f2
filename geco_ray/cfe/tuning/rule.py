"""The rule that tunes Wachter and ROAR-LIME: the grid, the scores of its points, and which of them is taken.

The rule ("Robust to Which Model Change?", validity first as ROAR's authors do): run every grid point on adverse rows of
the validation part with the first base model; take the largest share of base-valid answers, then the smallest mean
distance, then the first in the grid. No changed model is looked at. The selection is frozen for all base models.

The paper asks 25 rows, so that one row decides. ``corrected`` asks more of them and takes no difference for one that is
within its noise (:func:`select_beyond_noise`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.methods.base import METHODS, GenerationTask
from geco_ray.cfe.protocol import resolve_protocol

WACHTER_GRID = tuple(
    {"trade_off": trade_off, "learning_rate": rate} for trade_off in (0.01, 0.1, 1.0) for rate in (0.01, 0.02)
)
ROAR_LIME_GRID = tuple(
    {"trade_off": value} for value in (0.0005, 0.001, 0.005, *(round(0.01 + 0.05 * k, 2) for k in range(22)))
)
_ROUNDING = 1e-9  # four of any number of rows are two standard errors to the last bit
GRIDS: Mapping[str, tuple[dict[str, float], ...]] = {"wachter": WACHTER_GRID, "roar_lime": ROAR_LIME_GRID}


@dataclass(frozen=True)
class Candidate:
    """One grid point's score: the share of all factuals with a base-valid answer, and those answers' mean distance."""

    options: dict[str, float]
    valid_share: float
    distance: float | None

    @property
    def score(self) -> tuple[float, float]:
        """What is maximised, in lexicographic order; no distance counts as infinitely far."""
        return self.valid_share, -np.inf if self.distance is None else -self.distance


@dataclass(frozen=True)
class Tuning:
    """The outcome for one method, protocol and data set, with every candidate's score."""

    selected: dict[str, float]
    factuals: int
    candidates: tuple[Candidate, ...]


def select(candidates: Sequence[Candidate]) -> Candidate:
    """The best candidate; the first of equals."""
    return max(candidates, key=lambda candidate: candidate.score)  # max keeps the first


def select_beyond_noise(distances: NDArray[np.float64]) -> int:
    """Which candidate is taken where a difference counts only if it exceeds its own standard error.

    A share counts as equal to the largest one if it lies below it by no more than two standard errors of the paired
    difference; of those, a mean distance as equal to the smallest one likewise, over the factuals that both answer. Of
    what is left the largest share is taken, then the first in the grid. So at most four rows never decide alone.

    Args:
        distances: (candidates, factuals), NaN where the answer is not base-valid.
    """
    valid = np.isfinite(distances)
    shares = valid.mean(axis=1)
    best = int(shares.argmax())
    level = [i for i in range(len(distances)) if not _exceeds(valid[best].astype(float) - valid[i])]
    means = {i: float(distances[i][valid[i]].mean()) for i in level if valid[i].any()}
    if not means:
        return best
    nearest = min(means, key=lambda i: means[i])
    gaps = {i: (distances[i] - distances[nearest])[valid[i] & valid[nearest]] for i in means}
    near = [i for i, gap in gaps.items() if i == nearest or (len(gap) and not _exceeds(gap))]
    return max(near, key=lambda i: (shares[i], -i))


def _exceeds(differences: NDArray[np.float64]) -> bool:
    """Whether a mean of paired differences is more than two standard errors above zero."""
    error = float(differences.std(ddof=1)) / len(differences) ** 0.5 if len(differences) > 1 else 0.0
    return float(differences.mean()) > 2 * error + _ROUNDING


def tune(
    method: str,
    task: GenerationTask,
    factuals: NDArray[np.float64],
    grid: Sequence[dict[str, float]] | None = None,
) -> Tuning:
    """Score every point of the method's grid on ``factuals``, float64 (k, d), adverse rows of the validation part.

    Raises:
        UserError: no such method.
        KeyError: the method has no grid and none is given.
        ValueError: there is no factual to tune on.
    """
    from geco_ray.cfe.generation import generate

    if not len(factuals):
        raise ValueError("there is no adverse validation row to tune on")
    entry, own, ids = METHODS.get(method), _streams_of_tuning(task), range(len(factuals))
    points = list(grid if grid is not None else GRIDS[entry.name])
    distances = np.full((len(points), len(factuals)), np.nan)
    for row, point in zip(distances, points, strict=True):
        # One task for all points: they share what does not hang on the point, such as LIME's fits.
        table = generate(entry.target(own, entry.parse_options(dict(point))), own, factuals, ids, ids)
        row[:] = [np.nan if x is None else x for x in table["distance"].to_pylist()]
    candidates = tuple(_candidate(point, row) for point, row in zip(points, distances, strict=True))
    if resolve_protocol(task.protocol).tuning_ties_within_noise:
        chosen = candidates[select_beyond_noise(distances)]
    else:
        chosen = select(candidates)
    return Tuning(chosen.options, len(factuals), candidates)


def _candidate(point: dict[str, float], distances: NDArray[np.float64]) -> Candidate:
    valid = distances[np.isfinite(distances)]
    return Candidate(dict(point), len(valid) / len(distances), float(np.mean(valid)) if len(valid) else None)


class _Replay(GenerationTask):
    """The task on one stream of the base seed that runs through the factuals in their order, as LIME's own does."""

    @cached_property
    def _run_long(self) -> np.random.RandomState:
        return np.random.RandomState(self.base_seed % 2**32)

    def stream(self, method: str, factual_id: int) -> Any:
        """The shared stream, wherever it is."""
        return self._run_long


class _Own(GenerationTask):
    """The task with streams that no request of the benchmark has."""

    def stream(self, method: str, factual_id: int) -> np.random.Generator:
        """The stream of one tuning factual."""
        return super().stream(f"{method} tuning", factual_id)


def _streams_of_tuning(task: GenerationTask) -> GenerationTask:
    kind = _Replay if resolve_protocol(task.protocol).lime_tuning_replays_release else _Own
    return kind(**{field.name: getattr(task, field.name) for field in fields(task)})
