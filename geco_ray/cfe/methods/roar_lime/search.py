"""The descent of ROAR-LIME against the worst of the surrogates in a box, all requests of a batch together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from geco_ray.cfe.methods.base import Answer, GenerationTask, Scalar
from geco_ray.cfe.methods.roar_lime.options import RoarLimeOptions
from geco_ray.cfe.methods.roar_lime.surrogate import Scaler, Surrogate, explain, fit_as_lime, fit_logistic
from geco_ray.cfe.protocol import resolve_protocol
from geco_ray.cfe.rowwise import RowNet, pad_rows
from geco_ray.cfe.search.adam import RowAdam


class RoarLime:
    """Minimises BCE(worst logit in the box, 1) + trade_off |x - x0|_1 over x, in float32.

    The worst logit is w x + c - radius (|x|_1 + 1); the sign of x counts as constant in each step.
    """

    def __init__(self, task: GenerationTask, options: RoarLimeOptions, trade_off: float) -> None:
        self._task, self._options, self._trade_off = task, options, trade_off
        self._scaler = Scaler.of(task.train_x)
        self._around_factual = resolve_protocol(task.protocol).lime_centre == "factual"
        self.set_up: Mapping[str, Scalar] = {"trade_off": trade_off}

    def generate(self, factuals: NDArray[np.float64], factual_ids: Sequence[int]) -> list[Answer]:
        """One surrogate per request; then all requests descend together and leave as they settle."""
        net, deadline = RowNet(self._task.model, self._task.device), self._task.deadline(len(factuals))
        answers: dict[int, Answer] = {}
        surrogates: dict[int, Surrogate] = {}
        for i, x0 in enumerate(factuals):
            columns: dict[str, Scalar] = {"steps": 0, "budget_hit": False, "favourable_share": None}
            if deadline.over():
                answers[i] = Answer(None, "budget", deadline.reason, columns)
                continue
            surrogate = self._surrogate(x0, factual_ids[i], net)
            if surrogate is None:
                answers[i] = Answer(None, "error", "LIME's sample has one class", columns)
            else:
                surrogates[i] = surrogate
        descended = self._descend(net, factuals[list(surrogates)], list(surrogates.values()))
        answers |= zip(surrogates, descended, strict=True)
        return [answers[i] for i in range(len(factuals))]

    def _surrogate(self, x0: NDArray[np.float64], factual_id: int, net: RowNet) -> Surrogate | None:
        """The surrogate of a factual; settings that differ in the descent alone, as tuning's do, share it."""
        options = self._options

        def fit() -> Surrogate | None:
            z = self._task.stream("roar_lime", factual_id).standard_normal((options.samples, len(x0)))
            centre = x0 if self._around_factual else self._scaler.mean
            regression = fit_logistic if options.regression == "exact" else fit_as_lime
            return explain(x0, z, self._scaler, centre, net.favourable, self._task.device, regression)

        key = ("surrogate", factual_id, x0.tobytes(), options.samples, options.regression)
        return self._task.share(key, fit)

    def _descend(self, net: RowNet, factuals: NDArray[np.float64], surrogates: list[Surrogate]) -> list[Answer]:
        """One answer for each of ``factuals`` (k, d) with its surrogate."""
        if not surrogates:
            return []
        options, deadline, answers = self._options, self._task.deadline(len(factuals)), {}
        weight = pad_rows(net.tensor(np.stack([s.weights for s in surrogates])))
        intercept = pad_rows(net.tensor(np.array([[s.intercept] for s in surrogates])))[:, 0]
        origin, place = pad_rows(net.tensor(factuals)), torch.arange(len(factuals))
        adam, before = RowAdam(origin, options.learning_rate), torch.full_like(intercept, torch.inf)
        while len(place) and adam.steps < options.max_steps and not deadline.over():
            loss, gradient = self._loss(adam.x, origin, weight, intercept)
            adam.step(gradient)
            done = ((loss - before).abs() <= options.tolerance)[: len(place)]
            before = loss
            if done.any():
                left, gone = (~done).nonzero()[:, 0], done.nonzero()[:, 0]
                for i, point in zip(place[gone.cpu()].tolist(), adam.x[gone].tolist(), strict=True):
                    answers[i] = _answer(point, adam.steps, surrogates[i], False)
                place, origin, weight = place[left.cpu()], pad_rows(origin[left]), pad_rows(weight[left])
                intercept, before = (pad_rows(t[left, None])[:, 0] for t in (intercept, before))
                adam.keep(left)
        for i, point in zip(place.tolist(), adam.x[: len(place)].tolist(), strict=True):
            answers[i] = _answer(point, adam.steps, surrogates[i], True)
            if adam.steps < options.max_steps:
                answers[i] = Answer(None, "budget", deadline.reason, answers[i].columns)
        return [answers[i] for i in range(len(factuals))]

    def _loss(
        self, x: torch.Tensor, origin: torch.Tensor, weight: torch.Tensor, intercept: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Loss (k,) and its gradient (k, d) at ``x`` (k, d)."""
        radius = self._options.radius
        worst = weight - radius * torch.sign(x)
        logit = (worst * x).sum(dim=1) + intercept - radius
        gap = x - origin
        loss = torch.nn.functional.softplus(-logit) + self._trade_off * gap.abs().sum(dim=1)
        return loss, (torch.sigmoid(logit) - 1)[:, None] * worst + self._trade_off * torch.sign(gap)


def _answer(point: list[float], steps: int, surrogate: Surrogate, budget_hit: bool) -> Answer:
    columns = {"steps": steps, "budget_hit": budget_hit, "favourable_share": surrogate.favourable_share}
    return Answer(np.array(point), "found", None, columns)
