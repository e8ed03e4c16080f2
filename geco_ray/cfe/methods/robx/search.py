"""RobX: move a counterfactual towards training rows whose neighbourhood the base model decides with one voice.

A counterfactual must be more stable (:mod:`geco_ray.cfe.methods.robx.stability`) than a threshold of each base model: a
quantile of the stability of the training rows that it calls favourable, at least 0.5. Growing spheres give
the start; the nearest stable rows pull it, one tenth of the way a step ("Robust to Which Model Change?", RobX
with variance 0.01 and 1,000 samples).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.decision import THRESHOLD, favourable
from geco_ray.cfe.methods.base import Answer, Deadline, GenerationTask, Refused, Scalar
from geco_ray.cfe.methods.robx.stability import CommonNoise, Noise, Stability
from geco_ray.cfe.protocol import resolve_protocol
from geco_ray.cfe.rowwise import RowNet
from geco_ray.cfe.search.spheres import Shells, grow
from geco_ray.cfe.search.streams import Memo, Stream
from geco_ray.cfe.seeding import BaseKey
from geco_ray.seeds import numpy_stream

if TYPE_CHECKING:
    from geco_ray.cfe.methods.robx.options import RobxOptions

BATCH = 128
"""Rows whose stability is drawn together, in the calibration and in the search for stable rows."""

_CALIBRATION_SEED = 81_000  # added to the base seed by the released code


@dataclass(eq=False)
class _Walk:
    """One request on its way; ``answer`` is set when it ends."""

    noise: Noise
    columns: dict[str, Scalar]
    start: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    order: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    stable: list[int] = field(default_factory=list)
    points: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    answer: Answer | None = None

    def finish(self, point: NDArray[np.float64], stability: float) -> None:
        self.answer = Answer(point, "found", None, self.columns | {"stability": stability})

    def fail(self, answer: Answer) -> None:
        self.answer = replace(answer, columns=self.columns)


class Robx:
    """Both configurations of RobX; they differ in the quantile that sets the threshold.

    Args:
        task: base model and training rows; at least one row must have p above 0.5.
        options: see :class:`geco_ray.cfe.methods.robx.RobxOptions`.
    """

    batch = 256  # those with the same past share their noise, whose drawing costs most: so all of a base model together

    def __init__(self, task: GenerationTask, options: RobxOptions) -> None:
        self._task, self._options = task, options
        self._protocol = resolve_protocol(task.protocol)
        half = self._protocol.robx_class_includes_half
        std = float(np.sqrt(options.variance))
        self._stability = Stability(task.model, task.device, options.samples, std, half)
        self._rows = task.train_x[_favourable_rows(task)].astype(np.float64)
        self._key = BaseKey(task.dataset, task.base_seed, task.seeding)
        self._tau = self._threshold()
        self.set_up: Mapping[str, Scalar] = {"tau": self._tau, "candidates": len(self._rows)}

    def _threshold(self) -> float:
        """The quantile of the favourable training rows' stability, at least 0.5."""
        key = ("robx calibration", self._options.samples, self._options.variance)
        stability = self._task.share(key, self._calibrate)
        return max(0.5, float(np.quantile(stability, self._options.quantile)))

    def _calibrate(self) -> NDArray[np.float64]:
        """Stability of the favourable training rows; one stream, batches in row order."""
        seed = self._task.base_seed + _CALIBRATION_SEED
        if self._protocol.robx_shared_stream:
            stream = np.random.default_rng(self._key.draw(seed, "robx_calibration"))
        else:
            stream = numpy_stream("robx calibration", self._task.dataset, self._task.base_seed)
        values = []
        for i in range(0, len(self._rows), BATCH):
            rows = self._rows[i : i + BATCH]
            values.append(self._stability.of(rows, self._stability.draw(stream, len(rows))))
        return np.concatenate(values)

    def _streams(self, factual_ids: Sequence[int]) -> list[Stream]:
        if self._protocol.robx_shared_stream:
            memo, seed = Memo(), self._key.draw(self._task.base_seed, "robx")
            return [Stream(np.random.default_rng(seed), memo) for _ in factual_ids]
        return [Stream(self._task.stream("robx", i)) for i in factual_ids]

    def generate(self, factuals: NDArray[np.float64], factual_ids: Sequence[int]) -> list[Answer]:
        """All requests go through the four stages in lockstep, so that those with one past share their noise."""
        deadline = self._task.deadline(len(factuals))
        streams = self._streams(factual_ids)
        kind = Noise if self._protocol.robx_noise_per_step else CommonNoise
        walks = [_Walk(kind(self._stability, s), {"tau": self._tau, "stability": None}) for s in streams]
        self._start(walks, factuals, streams, deadline)
        self._find_stable_rows(walks, deadline)
        self._walk(walks, deadline)
        return [walk.answer or Answer(None, "error", "unfinished") for walk in walks]

    def _start(
        self, walks: list[_Walk], factuals: NDArray[np.float64], streams: list[Stream], deadline: Deadline
    ) -> None:
        """Stages 1 and 2: growing spheres in l1 within the training range; a start that is stable is the answer."""
        options, net = self._options, RowNet(self._task.model, self._task.device)
        bounds = (self._task.lower, self._task.upper)
        shells = Shells(1, options.samples, options.shell_step, options.max_shells, bounds)
        found = grow(factuals, streams, lambda x: net.favourable(net.tensor(x)).cpu().numpy(), shells, deadline)
        for walk, sphere in zip(walks, found, strict=True):
            walk.columns |= {"shells": sphere.shells, "steps": 0, "stable_rows": 0}
            if sphere.point is None:
                reason = deadline.reason if sphere.timed_out else "no favourable point in the shells"
                walk.fail(Answer(None, "budget", reason))
            else:
                walk.start = sphere.point
        for walk in _open(walks):
            stability = float(self._stability.of(walk.start[None], walk.noise.next(1), self._tau)[0])
            if stability > self._tau:
                walk.finish(walk.start, stability)

    def _find_stable_rows(self, walks: list[_Walk], deadline: Deadline) -> None:
        """Stage 3: favourable training rows by l1 distance to the start, until enough of them are stable."""
        wanted = self._options.stable_rows
        for walk in _open(walks):
            walk.order = np.argsort(np.abs(self._rows - walk.start).sum(axis=1), kind="stable")
        for first in range(0, len(self._rows), BATCH):
            for walk in _open(walks):
                if len(walk.stable) < wanted and not deadline.over():
                    rows = walk.order[first : first + BATCH]
                    stability = self._stability.of(self._rows[rows], walk.noise.next(len(rows)), self._tau)
                    walk.stable += rows[stability > self._tau].tolist()
        for walk in _open(walks):
            walk.stable = walk.stable[:wanted]
            walk.columns["stable_rows"] = len(walk.stable)
            walk.points = np.repeat(walk.start[None], len(walk.stable), axis=0)
            if deadline.over():
                walk.fail(Answer(None, "budget", deadline.reason))
            elif not walk.stable:
                walk.fail(Answer(None, "not_found", "no stable training row"))

    def _walk(self, walks: list[_Walk], deadline: Deadline) -> None:
        """Stage 4: one path to each stable row, in step; the first stable point, nearest row first, is the answer."""
        pull = self._options.pull
        for step in range(1, self._options.max_steps + 1):
            active = _open(walks)
            if not active or deadline.over():
                break
            for walk in active:
                walk.columns["steps"] = step
                walk.points = pull * self._rows[walk.stable] + (1 - pull) * walk.points
                stability = self._stability.of(walk.points, walk.noise.next(len(walk.points)), self._tau)
                passed = np.flatnonzero(stability > self._tau)
                if len(passed):
                    walk.finish(walk.points[passed[0]], float(stability[passed[0]]))
        for walk in _open(walks):
            reason = deadline.reason if deadline.over() else "no stable point on the paths"
            walk.fail(Answer(None, "budget", reason))


def _open(walks: list[_Walk]) -> list[_Walk]:
    """The unfinished ones, those at one position of a shared stream next to each other."""
    return sorted((walk for walk in walks if walk.answer is None), key=lambda walk: walk.noise.stream.position)


def _favourable_rows(task: GenerationTask) -> NDArray[np.bool_]:
    """The training rows of the favourable class, bool (n,)."""
    p = task.model.probability(task.train_x)
    return favourable(p) if resolve_protocol(task.protocol).robx_class_includes_half else p > THRESHOLD


def prepare_robx(task: GenerationTask, options: RobxOptions) -> Robx | Refused:
    """RobX for ``task``, or a refusal if the base model calls no training row favourable."""
    if not _favourable_rows(task).any():
        none = {"tau": None, "stability": None, "shells": 0, "steps": 0, "stable_rows": 0}
        return Refused("not_found", "no training row is favourable", none)
    return Robx(task, options)
