"""BetaRCE: a counterfactual that enough retrained models agree on, found by growing spheres twice.

The agreement of an ensemble is a count of successes; with Jeffreys' prior its lower confidence bound is a quantile of a
beta distribution. With the paper's 32 models, bound 0.9 and confidence 0.95, only unanimity passes: the bound is 0.942
at 32 of 32 and 0.884 at 31 ("Robust to Which Model Change?", BetaRCE).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from geco_ray.cfe.methods.base import Answer, GenerationTask, Scalar
from geco_ray.cfe.rowwise import RowNet, pad_rows
from geco_ray.cfe.search.spheres import Found, Shells, grow
from geco_ray.cfe.search.streams import Stream

if TYPE_CHECKING:
    from geco_ray.cfe.methods.betarce.options import BetarceOptions
    from geco_ray.cfe.mlp import Mlp

_ROWS_AT_ONCE = 1024
_MEMBERS_AT_ONCE = 8  # most points fail early; those that can no longer pass are not shown to the rest


def lower_bound(successes: int, members: int, confidence: float) -> float:
    """Lower bound of the share of models that agree: the (1 - confidence) quantile of Beta(0.5 + s, 0.5 + f)."""
    from scipy.stats import beta

    return float(beta.ppf(1 - confidence, 0.5 + successes, 0.5 + members - successes))


def needed_successes(members: int, threshold: float, confidence: float) -> int:
    """Fewest agreeing models whose lower bound is above ``threshold``; ``members + 1`` if even all are too few."""
    for successes in range(members + 1):
        if lower_bound(successes, members, confidence) > threshold:
            return successes
    return members + 1


class Ensemble:
    """Networks of one shape, evaluated together."""

    def __init__(self, models: Sequence[Mlp], device: str) -> None:
        self.device, self.members = torch.device(device), len(models)
        self._layers = []
        for layer in range(len(models[0].weights)):
            weight = np.stack([model.weights[layer].T for model in models])
            bias = np.stack([model.biases[layer] for model in models])[:, None]
            self._layers.append((torch.tensor(weight, device=device), torch.tensor(bias, device=device)))

    def favourable(self, x: torch.Tensor, first: int, last: int) -> torch.Tensor:
        """Whether members ``first`` to ``last`` call each row of ``x`` (m, d) favourable; bool (last - first, m)."""
        hidden = pad_rows(x).expand(last - first, -1, -1)
        for layer, (weight, bias) in enumerate(self._layers):
            hidden = torch.baddbmm(bias[first:last], hidden if layer == 0 else hidden.relu_(), weight[first:last])
        return (hidden[:, :, 0] >= 0)[:, : len(x)]

    def agreeing(self, x: torch.Tensor) -> torch.Tensor:
        """How many members call each row of ``x`` (m, d) favourable; int (m,)."""
        return self.favourable(x, 0, self.members).sum(dim=0)

    def at_least(self, x: torch.Tensor, needed: int) -> torch.Tensor:
        """Whether at least ``needed`` members call each row of ``x`` (m, d) favourable; bool (m,)."""
        passed = torch.zeros(len(x), dtype=torch.bool, device=x.device)
        for rows in torch.split(torch.arange(len(x), device=x.device), _ROWS_AT_ONCE):
            successes = torch.zeros(len(rows), dtype=torch.int64, device=x.device)
            for first in range(0, self.members, _MEMBERS_AT_ONCE):
                last = min(first + _MEMBERS_AT_ONCE, self.members)
                successes += self.favourable(x[rows], first, last).sum(dim=0)
                possible = successes + self.members - last >= needed
                rows, successes = rows[possible], successes[possible]
            passed[rows] = True
        return passed


class Betarce:
    """BetaRCE over an ensemble of helper models, which are never evaluated themselves."""

    def __init__(self, task: GenerationTask, options: BetarceOptions, models: Sequence[Mlp]) -> None:
        self._task, self._options = task, options
        self._net, self._ensemble = RowNet(task.model, task.device), Ensemble(models, task.device)
        self._needed = needed_successes(len(models), options.threshold, options.confidence)
        self.set_up: Mapping[str, Scalar] = {"members": len(models), "needed": self._needed}

    def generate(self, factuals: NDArray[np.float64], factual_ids: Sequence[int]) -> list[Answer]:
        """Stage 1 finds a counterfactual of the base model, stage 2 starts there and asks the ensemble too."""
        options, deadline = self._options, self._task.deadline(len(factuals))
        streams = [Stream(self._task.stream("betarce", i)) for i in factual_ids]
        shells = Shells(2, options.samples, options.shell_step, options.max_start_shells)
        starts = grow(factuals, streams, self._base_favourable, shells, deadline)
        found: dict[int, Found] = {i: Found(s.point, 0) for i, s in enumerate(starts) if s.point is not None}
        unsure = [i for i, start in found.items() if not self._passes(_point(start)[None])[0]]
        shells = Shells(2, options.samples, options.shell_step, options.max_shells)
        centres = np.array([found[i].point for i in unsure]).reshape(len(unsure), factuals.shape[1])
        found |= zip(unsure, grow(centres, [streams[i] for i in unsure], self._passes, shells, deadline), strict=True)
        return [self._answer(start, found.get(i)) for i, start in enumerate(starts)]

    def _base_favourable(self, x: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray(self._net.favourable(self._net.tensor(x)).cpu().numpy())

    def _passes(self, x: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Base model favourable and lower bound above the threshold, for each row of ``x`` (m, d)."""
        rows = self._net.tensor(x)
        passed = self._net.favourable(rows)
        passed[passed.clone()] = self._ensemble.at_least(rows[passed], self._needed)
        return np.asarray(passed.cpu().numpy())

    def _answer(self, start: Found, end: Found | None) -> Answer:
        columns: dict[str, Scalar] = {"start_shells": start.shells, "shells": 0, "agreeing": None, "bound": None}
        last = end or start
        if end is not None:
            columns |= {"shells": end.shells}
        if last.point is None:
            stage = "counterfactual of the base model" if end is None else "point that enough helper models accept"
            reason = self._task.deadline(0).reason if last.timed_out else f"no {stage} in the shells"
            return Answer(None, "budget", reason, columns)
        agreeing = int(self._ensemble.agreeing(self._net.tensor(last.point[None]))[0])
        bound = lower_bound(agreeing, self._ensemble.members, self._options.confidence)
        return Answer(last.point, "found", None, columns | {"agreeing": agreeing, "bound": bound})


def train_helpers(task: GenerationTask, members: int) -> tuple[Mlp, ...]:
    """The first ``members`` helper models of the task's base model."""
    from geco_ray.cfe.methods.betarce.ensemble import betarce_ensemble
    from geco_ray.cfe.seeding import BaseKey
    from geco_ray.cfe.training import Pool

    key = BaseKey(task.dataset, task.base_seed, task.seeding)
    x = np.concatenate([task.train_x, task.update_x])
    pool = Pool(x, task.train_y, task.update_y, task.val_x, task.val_y)
    return betarce_ensemble(key, task.model, pool, task.device, members)


def _point(found: Found) -> NDArray[np.float64]:
    assert found.point is not None
    return found.point
