"""The search of APΔS: margins rise until all sampled networks accept the closest point that has the margin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.methods.apas.calibration import calibrate_radius, replica_seeds
from geco_ray.cfe.methods.apas.options import ApasOptions
from geco_ray.cfe.methods.apas.release_timeout import dropped_by_cap
from geco_ray.cfe.methods.apas.sampling import SampledNetworks, sample_size
from geco_ray.cfe.methods.base import Answer, Deadline, GenerationTask, Scalar
from geco_ray.cfe.milp.bounds import Neighbourhood, nearest_possible
from geco_ray.cfe.milp.network import ReluNet
from geco_ray.cfe.milp.proof import ProofResult, prove
from geco_ray.cfe.milp.reach import Reach, highest_logit
from geco_ray.cfe.milp.walk import MAX_PROGRAMS, Walk
from geco_ray.cfe.protocol import resolve_protocol
from geco_ray.cfe.seeding import BaseKey

MARGIN_SLACK = 1e-4
_REACH_NODES = 500
_OUT_OF_PROGRAMS = "the budget of linear programs ended"


@dataclass
class _Request:
    """One request while it is worked on."""

    walk: Walk
    deadline: Deadline
    point: NDArray[np.float64] | None = None
    margin: float | None = None
    tried: int = 0
    nodes: int = 0
    proof: ProofResult | None = None
    improved: bool = False


class Apas:
    """APΔS for one base model: its radius, its sampled networks, and (when needed) its highest logit."""

    def __init__(self, task: GenerationTask, options: ApasOptions) -> None:
        self._task, self._options = task, options
        self._key = BaseKey(task.dataset, task.base_seed, task.seeding)
        self._net = ReluNet.from_mlp(task.model)
        self._rows = task.train_x.astype(np.float64)
        self._samples = sample_size(options.confidence, options.robustness)
        self._radius = options.radius or _calibrated(self._key, task)
        seed = self._key.draw(task.base_seed, "apas_search")
        self._search: SampledNetworks = SampledNetworks(task.model, self._radius, self._samples, seed, task.device)
        self.set_up: Mapping[str, Scalar] = {"radius": self._radius, "sampled_networks": self._samples}

    def generate(self, factuals: NDArray[np.float64], factual_ids: Sequence[int]) -> list[Answer]:
        """Each request on its own; a safety time limit is looked at between margins only."""
        deadline = self._task.deadline(len(factuals))
        rows = np.asarray(factuals, dtype=np.float64)
        return [self._answer(row, int(i), deadline) for row, i in zip(rows, factual_ids, strict=True)]

    @cached_property
    def _reach(self) -> Reach:
        lower, upper = self._task.lower.astype(np.float64), self._task.upper.astype(np.float64)
        return highest_logit(self._net, lower, upper, self._rows, _REACH_NODES)

    def _answer(self, factual: NDArray[np.float64], factual_id: int, deadline: Deadline) -> Answer:
        around = Neighbourhood.of(factual, self._task.lower, self._task.upper)
        request = _Request(Walk(self._net, around, self._rows, starts=self._options.starts), deadline)
        failure = self._raise_margins(request)
        certified = None
        if failure is None and request.point is not None:
            certified = self._hold_out(factual_id).accept(request.point)
        columns = self._columns(request, certified)
        if failure is not None:
            return Answer(None, failure[0], failure[1], columns)
        return Answer(request.point, "found", None, columns)

    def _raise_margins(self, request: _Request) -> tuple[Literal["not_found", "budget"], str] | None:
        """Leave the accepted point in ``request`` and return ``None``, or say why there is none."""
        previous: NDArray[np.float64] | None = None
        for margin in self._options.margins():
            if request.deadline.over():
                return "budget", Deadline.reason
            if self._left(request) <= 0:
                return "budget", _OUT_OF_PROGRAMS
            request.tried, request.margin = request.tried + 1, margin
            found = self._closest(request, margin, previous)
            if found is None and self._left(request) <= 0:
                return "budget", _OUT_OF_PROGRAMS
            if found is None and self._reach.ceiling >= margin + MARGIN_SLACK:
                return "budget", "the node budget ended before the margin was reached or excluded"
            if found is None:
                if resolve_protocol(self._task.protocol).apas_stops_when_infeasible:
                    return "not_found", "no point of the training box has the margin"
                continue
            previous = found
            if self._accepts(found):
                request.point = self._proven(request, margin, found)
                if request.point is not None:
                    return None
        return "not_found", "no margin was accepted by all sampled networks"

    def _closest(
        self, request: _Request, margin: float, previous: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        logit = margin + MARGIN_SLACK
        known = [] if previous is None else [previous]
        found = request.walk.find(logit, known, min(MAX_PROGRAMS, self._left(request)))
        if found is None and self._left(request) > 0 and self._reach.reached >= logit:
            found = request.walk.find(logit, [self._reach.point], min(MAX_PROGRAMS, self._left(request)))
        return None if found is None else found.point

    def _left(self, request: _Request) -> int:
        return self._options.max_programs - request.walk.programs

    def _accepts(self, point: NDArray[np.float64]) -> bool:
        return bool(self._task.model.favourable(point[None])[0]) and self._search.accept(point)

    def _proven(self, request: _Request, margin: float, point: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The accepted point, or a closer one that is accepted too; ``None`` if the closer one is rejected."""
        if self._options.proof == "none":
            return point
        budget = self._options.proof_nodes - request.nodes if self._options.proof == "budget" else None
        result = prove_request(self._task, request.walk.around.factual, margin, point, budget)
        request.nodes += result.nodes
        request.proof, request.improved = result, request.improved or result.improved
        if result.improved and not self._accepts(result.point):
            request.proof = None
            return None
        return result.point

    def _hold_out(self, factual_id: int) -> SampledNetworks:
        seed = self._key.draw(self._task.base_seed + 1_000_003 + factual_id, "apas_holdout", factual_id)
        return SampledNetworks(self._task.model, self._radius, self._samples, seed, self._task.device)

    def _columns(self, request: _Request, certified: bool | None) -> dict[str, Scalar]:
        distance = lower = gap = None
        if request.point is not None and request.margin is not None:
            around = request.walk.around
            distance = around.distance(request.point)
            proof = request.proof
            lower = (
                proof.lower_bound
                if proof
                else nearest_possible(self._net, around, request.margin + MARGIN_SLACK, distance)
            )
            gap = max(0.0, 1 - lower / distance) if distance > 0 else 0.0
        dropped, unknown = dropped_by_cap(self._task.dataset, request.tried)
        return {
            "certified": certified,
            "margin": request.margin,
            "margins_tried": request.tried,
            "linear_programs": request.walk.programs,
            "l1_distance": distance,
            "l1_lower_bound": lower,
            "l1_gap": gap,
            "proof_status": request.proof.status if request.proof else "none",
            "proof_nodes": request.nodes,
            "proof_improved": request.improved,
            "dropped_by_30s_cap": dropped,
            "dropped_by_30s_cap_unknown": unknown,
        }


def prove_request(
    task: GenerationTask,
    factual: NDArray[np.float64],
    margin: float,
    incumbent: NDArray[np.float64],
    nodes: int | None,
    lower_bound: float = 0.0,
) -> ProofResult:
    """Prove that ``incumbent`` is the closest point to ``factual`` (both (d,)) with ``margin``, or find a closer one.

    Depends on its arguments only, so proofs of stored answers can run anywhere and be taken up again with the
    ``lower_bound`` of an earlier one. A closer point still has to pass the acceptance test of APΔS.

    Args:
        margin: the accepted margin of the request, as its column has it.
        nodes: budget of branch-and-bound nodes; ``None`` has no end.
    """
    around = Neighbourhood.of(factual, task.lower, task.upper)
    net = ReluNet.from_mlp(task.model)
    return prove(net, around, margin + MARGIN_SLACK, incumbent, nodes, lower_bound=lower_bound)


def _calibrated(key: BaseKey, task: GenerationTask) -> float:
    return calibrate_radius(task.model, task.update_x, task.update_y, replica_seeds(key)).value
