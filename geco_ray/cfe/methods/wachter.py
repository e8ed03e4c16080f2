"""Wachter: gradient descent from the factual on cross-entropy plus weighted distance (baseline)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from geco_ray.cfe.decision import THRESHOLD
from geco_ray.cfe.methods.base import METHODS, Answer, GenerationTask, Prepared, Scalar
from geco_ray.cfe.protocol import resolve_protocol
from geco_ray.registry import Options, Profile

if TYPE_CHECKING:
    import torch

    from geco_ray.cfe.rowwise import RowNet


class WachterOptions(Options):
    """Options of Wachter.

    Args:
        trade_off: weight of the l1 distance to the factual; ``None``: as tuned for the data set (under ``paper`` 1.0 on
            all four).
        learning_rate: step size of Adam (AMSGrad); ``None``: as tuned (under ``paper`` 0.01 on all four).
        max_steps: budget; at its end the current point is returned and ``budget_hit`` is set.
        margin: how far above 0.5 the probability must be for the search to stop.
    """

    trade_off: float | None = Field(None, ge=0)
    learning_rate: float | None = Field(None, gt=0)
    max_steps: int = Field(20_000, ge=1)
    margin: float = Field(0.001, ge=0)


class Wachter:
    """Minimises w BCE(f(x), 1) + trade_off |x - x0|_1, with w = d under ``paper`` and w = 1 under ``corrected``."""

    def __init__(self, task: GenerationTask, options: WachterOptions, trade_off: float, learning_rate: float) -> None:
        self._task, self._options = task, options
        self._trade_off, self._learning_rate = trade_off, learning_rate
        features = task.train_x.shape[1]
        self._weight = float(features) if resolve_protocol(task.protocol).wachter_bce_per_feature else 1.0
        self.set_up: Mapping[str, Scalar] = {"trade_off": trade_off, "learning_rate": learning_rate}

    def generate(self, factuals: NDArray[np.float64], factual_ids: Sequence[int]) -> list[Answer]:
        """All requests step together; one that has reached the margin takes that step and leaves."""
        from geco_ray.cfe.rowwise import RowNet

        net = RowNet(self._task.model, self._task.device)
        start = net.tensor(factuals)
        adverse = np.flatnonzero(~self._task.model.favourable(factuals)).tolist()
        refused = Answer(None, "not_found", "the factual is favourable", {"steps": 0, "budget_hit": False})
        answers = [refused] * len(factuals)
        for place, answer in zip(adverse, self._descend(net, start[adverse]), strict=True):
            answers[place] = answer
        return answers

    def _descend(self, net: RowNet, start: torch.Tensor) -> list[Answer]:
        """One answer for each row of ``start`` (k, d), all of them adverse."""
        import torch

        from geco_ray.cfe.rowwise import pad_rows
        from geco_ray.cfe.search.adam import RowAdam

        options, deadline = self._options, self._task.deadline(len(start))
        answers: dict[int, Answer] = {}
        place, origin = torch.arange(len(start)), pad_rows(start)
        adam = RowAdam(start, self._learning_rate, amsgrad=True)
        while len(place) and adam.steps < options.max_steps and not deadline.over():
            logit, slope = net.logit_and_gradient(adam.x)
            p = torch.sigmoid(logit)
            pull = self._trade_off * torch.sign(adam.x - origin)
            adam.step((self._weight * (p - 1))[:, None] * slope + pull)
            done = (p - options.margin >= THRESHOLD)[: len(place)]
            if done.any():
                columns = {"steps": adam.steps, "budget_hit": False}
                left, gone = (~done).nonzero()[:, 0], done.nonzero()[:, 0]
                for i, point in zip(place[gone.cpu()].tolist(), adam.x[gone].tolist(), strict=True):
                    answers[i] = Answer(np.array(point), "found", None, columns)
                place, origin = place[left.cpu()], pad_rows(origin[left])
                adam.keep(left)
        columns = {"steps": adam.steps, "budget_hit": True}
        for i, point in zip(place.tolist(), adam.x[: len(place)].tolist(), strict=True):
            answers[i] = (
                Answer(np.array(point), "found", None, columns)
                if adam.steps == options.max_steps
                else Answer(None, "budget", deadline.reason, columns)
            )
        return [answers[i] for i in range(len(start))]


@METHODS.register(
    "wachter",
    title="Wachter",
    options=WachterOptions,
    profile=Profile(order=1, colour="#333333", marker="o", aims=False, assumes="nothing", certificate="none"),
)
def prepare(task: GenerationTask, options: WachterOptions) -> Prepared:
    """Take what the options leave open from the frozen tuning of the data set."""
    from geco_ray.cfe.tuning import resolve_tuned

    values = resolve_tuned("wachter", options, task.protocol, task.dataset, task.seeding)
    return Wachter(task, options, values["trade_off"], values["learning_rate"])
