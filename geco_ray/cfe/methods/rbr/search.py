"""RBR: from the boundary into the side where, in the worst case, the wanted class is the more likely one.

Three parts per request: the closest boundary point on a segment to a favourable training row; a sample in a ball around
it, split by predicted class; and a descent on the log-ratio of the other class's best case to the wanted class's worst
case, both over Wasserstein balls around the two samples ("Robust to Which Model Change?", RBR).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from geco_ray.cfe.methods.base import Answer, Deadline, GenerationTask, Refused, Scalar
from geco_ray.cfe.methods.rbr.losses import STEP, Loss, Optimistic, Pessimistic, Setting, minimise
from geco_ray.cfe.protocol import resolve_protocol
from geco_ray.cfe.rowwise import RowNet

if TYPE_CHECKING:
    from geco_ray.cfe.methods.rbr.options import RbrOptions

_NEAR = 64  # rows whose whole segment is looked at; they bound how far the others need be walked
_SLOT = 32  # a request's samples fill whole vector registers, so that its sums do not depend on its neighbours


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of one class of k requests, filled up to one width: ``x`` (k, slots, d), ``used`` (k, slots)."""

    x: torch.Tensor
    used: torch.Tensor

    def keep(self, rows: torch.Tensor) -> Samples:
        """Only the requests ``rows``."""
        return Samples(self.x[rows], self.used[rows])


class Rbr:
    """RBR for one base model.

    Args:
        task: base model and training rows; at least one row must be favourable.
        options: see :class:`geco_ray.cfe.methods.rbr.RbrOptions`.
    """

    def __init__(self, task: GenerationTask, options: RbrOptions) -> None:
        self._task, self._options = task, options
        self._net = RowNet(task.model, task.device)
        rows = self._net.tensor(task.train_x)
        self._rows = rows[torch.tensor(task.model.favourable(task.train_x), device=rows.device)]
        self._radius = options.radius_share * largest_distance(rows)
        features = rows.shape[1]
        self._optimistic = Optimistic(Setting(features, options.sigma, options.optimistic_radius))
        self._pessimistic = Pessimistic(
            Setting(features, options.sigma, options.pessimistic_radius),
            exact=resolve_protocol(task.protocol).rbr_exact_gradient,
        )
        self.set_up: Mapping[str, Scalar] = {"ball_radius": self._radius, "candidates": len(self._rows)}

    def generate(self, factuals: NDArray[np.float64], factual_ids: Sequence[int]) -> list[Answer]:
        """Boundary point and sample of each request, then one descent of all."""
        deadline, origin = self._task.deadline(len(factuals)), self._net.tensor(factuals)
        answers: dict[int, Answer] = {}
        ready: list[tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]] = []
        for i, factual_id in enumerate(factual_ids):
            columns: dict[str, Scalar] = {"steps": 0, "boundary_distance": None, "favourable_samples": None}
            if deadline.over():
                answers[i] = Answer(None, "budget", deadline.reason, columns)
                continue
            boundary = self._boundary(origin[i])
            sample = self._ball(boundary, factual_id)
            labels = self._net.favourable(sample)
            if labels.all() or not labels.any():
                answers[i] = Answer(None, "not_found", "the ball around the boundary has one class", columns)
            else:
                ready.append((i, boundary, sample, labels))
        if ready:
            answers |= self._descend(origin, ready, deadline)
        return [answers[i] for i in range(len(factuals))]

    def _boundary(self, origin: torch.Tensor) -> torch.Tensor:
        """The first favourable point, on 100 equal steps from ``origin`` (d,) to each near row, that is closest in l1.

        The nearest rows are walked to the end; the closest point on them bounds the steps on the others.
        """
        length = (self._rows - origin).abs().sum(dim=1)
        order = torch.argsort(length, stable=True)[: self._options.candidates]
        rows, length = self._rows[order], length[order]
        share = torch.linspace(0, 1, self._options.segment_steps, device=origin.device)
        best, closest = origin, torch.inf
        for first, last in ((0, _NEAR), (_NEAR, len(rows))):
            part = rows[first:last]
            near = share * length[first:last, None] <= closest * (1 + 1e-5)
            row, step = near.nonzero(as_tuple=True)
            if not len(row):
                continue
            points = origin + share[step, None] * (part[row] - origin)
            crossed = torch.zeros(near.shape, dtype=torch.bool, device=origin.device)
            crossed[row, step] = self._net.favourable(points)
            found = crossed.any(dim=1).nonzero()[:, 0]
            step = crossed[found].to(torch.uint8).argmax(dim=1)
            points = origin + share[step, None] * (part[found] - origin)
            distance = (points - origin).abs().sum(dim=1)
            if len(distance) and float(distance.min()) < closest:
                closest, best = float(distance.min()), points[int(torch.argmin(distance))]
        return best

    def _ball(self, centre: torch.Tensor, factual_id: int) -> torch.Tensor:
        """Points (samples, d) uniform in the Euclidean ball around ``centre`` (d,)."""
        stream, d, count = self._task.stream("rbr", factual_id), len(centre), self._options.samples
        direction = stream.standard_normal((count, d))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        offset = direction * (self._radius * stream.random(count) ** (1 / d))[:, None]
        return self._net.tensor(offset) + centre

    def _descend(
        self,
        factuals: torch.Tensor,
        ready: list[tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]],
        deadline: Deadline,
    ) -> dict[int, Answer]:
        """The outer loop over all requests that have a sample of both classes; finished ones leave."""
        options, answers = self._options, {}
        place = torch.tensor([i for i, *_ in ready])
        origin, x = factuals[place.to(factuals.device)], torch.stack([point for _, point, *_ in ready])
        adverse = _gather([sample[~labels] for *_, sample, labels in ready], options.samples)
        wanted = _gather([sample[labels] for *_, sample, labels in ready], options.samples)
        gaps = (x - origin).abs().sum(dim=1)
        own = {
            i: {"boundary_distance": float(gap), "favourable_samples": int(labels.sum())}
            for gap, (i, _, _, labels) in zip(gaps, ready, strict=True)
        }
        budget = gaps + options.extra_distance
        best = torch.full_like(budget, torch.inf)
        stale = torch.zeros_like(budget, dtype=torch.int64)
        for step in range(options.max_steps + 1):
            value, gradient = self._objective(x, adverse, wanted)
            out = ((x - origin).abs().sum(dim=1) >= budget) | (stale >= options.patience)
            done = (out | (step == options.max_steps)).cpu()
            for i, point, hit in zip(place[done].tolist(), x[done].tolist(), (~out[done]).tolist(), strict=True):
                answers[i] = Answer(np.array(point), "found", None, {"steps": step, "budget_hit": hit, **own[i]})
            left = (~done).nonzero()[:, 0]
            if not len(left) or deadline.over():
                break
            better = best - value > options.tolerance
            best, stale = torch.where(better, value, best)[left], torch.where(better, 0, stale + 1)[left]
            moved = (x - STEP * gradient - origin)[left]
            place, origin, budget = place[left], origin[left], budget[left]
            x = origin + project_l1(moved, budget)
            adverse, wanted = adverse.keep(left), wanted.keep(left)
        for i in own.keys() - answers.keys():
            answers[i] = Answer(None, "budget", deadline.reason, {"steps": step, "budget_hit": True, **own[i]})
        return answers

    def _objective(self, x: torch.Tensor, adverse: Samples, wanted: Samples) -> tuple[torch.Tensor, torch.Tensor]:
        """F (k,) and its gradient (k, d) at ``x`` (k, d), with the inner solutions held."""
        high, pull = _likelihood(self._optimistic, x, adverse, -1.0)
        low, push = _likelihood(self._pessimistic, x, wanted, 1.0)
        return high - low, pull - push


def _likelihood(loss: Loss, x: torch.Tensor, samples: Samples, sign: float) -> tuple[torch.Tensor, torch.Tensor]:
    """logsumexp of sign * loss over the samples (k,), and its gradient by ``x`` (k, d)."""
    gap = x[:, None] - samples.x
    c = torch.where(samples.used, torch.sqrt((gap * gap).sum(dim=2)), 1.0)
    inner = minimise(loss, c, samples.used)
    terms = torch.where(samples.used, sign * loss.value(*inner, c), -torch.inf)
    weight = torch.softmax(terms, dim=1) * sign * loss.slope(*inner, c) / c
    return torch.logsumexp(terms, dim=1), (weight[:, :, None] * gap).sum(dim=1)


def _gather(samples: list[torch.Tensor], most: int) -> Samples:
    """Samples of different numbers in one tensor of a width that does not depend on who is in the batch."""
    slots = -(-most // _SLOT) * _SLOT
    x = samples[0].new_zeros((len(samples), slots, samples[0].shape[1]))
    used = torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device)
    for i, rows in enumerate(samples):
        x[i, : len(rows)], used[i, : len(rows)] = rows, True
    return Samples(x, used)


def project_l1(x: torch.Tensor, radius: torch.Tensor) -> torch.Tensor:
    """Euclidean projection of each row of ``x`` (k, d) onto the l1 ball of its ``radius`` (k,)."""
    size = x.abs()
    ordered = size.sort(dim=1, descending=True).values
    count = torch.arange(1, x.shape[1] + 1, device=x.device)
    excess = (ordered.cumsum(dim=1) - radius[:, None]) / count
    last = (ordered > excess).sum(dim=1, keepdim=True).clamp(min=1) - 1
    threshold = excess.gather(1, last).clamp(min=0)
    inside = (size.sum(dim=1) <= radius)[:, None]
    return torch.where(inside, x, torch.sign(x) * (size - threshold).clamp(min=0))


def largest_distance(rows: torch.Tensor, chunk: int = 1024) -> float:
    """Largest Euclidean distance between two of ``rows`` (n, d)."""
    return max(float(torch.cdist(part, rows).max()) for part in torch.split(rows, chunk))


def prepare_rbr(task: GenerationTask, options: RbrOptions) -> Rbr | Refused:
    """RBR for ``task``, or a refusal if the base model calls no training row favourable."""
    if not task.model.favourable(task.train_x).any():
        none = {"steps": 0, "boundary_distance": None, "favourable_samples": None}
        return Refused("not_found", "no training row is favourable", none)
    return Rbr(task, options)
