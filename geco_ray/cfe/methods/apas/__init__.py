"""APΔS: the closest point with a margin, the margin raised until every network sampled near the base model agrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from geco_ray.cfe.methods.base import METHODS, Answer, Deadline, GenerationTask, Prepared, Scalar
from geco_ray.cfe.protocol import switches
from geco_ray.registry import Options

if TYPE_CHECKING:
    from geco_ray.cfe.methods.apas.sampling import SampledNetworks
    from geco_ray.cfe.milp.proof import ProofResult
    from geco_ray.cfe.milp.reach import Reach
    from geco_ray.cfe.milp.walk import Walk
    from geco_ray.cfe.seeding import BaseKey

MARGIN_SLACK = 1e-4
_REACH_NODES = 500
_OUT_OF_PROGRAMS = "the budget of linear programs ended"


class ApasOptions(Options):
    """Options of APΔS; the defaults are the paper's, but for the budgets, which are counted here and not timed.

    Args:
        confidence: of the statement that the sample makes.
        robustness: share of the sampled box that must agree.
        first_margin: first margin of the logit.
        margin_step: how much it is raised after a rejected candidate.
        last_margin: the search ends above it.
        radius: largest parameter change of the sampled networks; ``None`` calibrates it on the update pool.
        starts: starting points of a search, see :class:`geco_ray.cfe.milp.walk.Walk`.
        max_programs: linear programs a request may take over all its margins.
        proof: ``none``: candidates are the closest that were found; ``budget`` and ``full``: the accepted candidate is
            proven closest, within ``proof_nodes`` or without end. A closer point replaces it, and must be accepted too.
        proof_nodes: branch-and-bound nodes of a request under ``proof: budget``.
    """

    confidence: float = Field(default=0.999, gt=0, lt=1)
    robustness: float = Field(default=0.995, gt=0, lt=1)
    first_margin: float = Field(default=0.01, ge=0)
    margin_step: float = Field(default=0.2, gt=0)
    last_margin: float = Field(default=20.0, gt=0)
    radius: float | None = Field(default=None, gt=0)
    starts: int = Field(default=12, ge=1)
    max_programs: int = Field(default=20_000, ge=1)
    proof: Literal["none", "budget", "full"] = "none"
    proof_nodes: int = Field(default=5_000, ge=1)

    def margins(self) -> list[float]:
        """All margins in their order."""
        count = int(np.floor((self.last_margin - self.first_margin) / self.margin_step + 1e-9)) + 1
        return [self.first_margin + self.margin_step * k for k in range(max(count, 0))]


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
        from geco_ray.cfe.methods.apas.sampling import SampledNetworks, sample_size
        from geco_ray.cfe.milp.network import ReluNet
        from geco_ray.cfe.seeding import BaseKey

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
        from geco_ray.cfe.milp.reach import highest_logit

        lower, upper = self._task.lower.astype(np.float64), self._task.upper.astype(np.float64)
        return highest_logit(self._net, lower, upper, self._rows, _REACH_NODES)

    def _answer(self, factual: NDArray[np.float64], factual_id: int, deadline: Deadline) -> Answer:
        from geco_ray.cfe.milp.bounds import Neighbourhood
        from geco_ray.cfe.milp.walk import Walk

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
                if switches(self._task.protocol).apas_stops_when_infeasible:
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
        from geco_ray.cfe.milp.walk import MAX_PROGRAMS

        logit = margin + MARGIN_SLACK
        known = [] if previous is None else [previous]
        found = request.walk.find(logit, known, min(MAX_PROGRAMS, self._left(request)))
        if found is None and self._left(request) > 0 and self._reach.reached >= logit:
            found = request.walk.find(logit, [self._reach.point], min(MAX_PROGRAMS, self._left(request)))
        return None if found is None else found.point

    def _left(self, request: _Request) -> int:
        return self._options.max_programs - request.walk.programs

    def _accepts(self, point: NDArray[np.float64]) -> bool:
        from geco_ray.cfe.rowwise import probabilities

        return bool(probabilities(self._task.model, point[None])[0] >= 0.5) and self._search.accept(point)

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
        from geco_ray.cfe.methods.apas.sampling import SampledNetworks

        seed = self._key.draw(self._task.base_seed + 1_000_003 + factual_id, "apas_holdout", factual_id)
        return SampledNetworks(self._task.model, self._radius, self._samples, seed, self._task.device)

    def _columns(self, request: _Request, certified: bool | None) -> dict[str, Scalar]:
        from geco_ray.cfe.milp.bounds import nearest_possible

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
    from geco_ray.cfe.milp.bounds import Neighbourhood
    from geco_ray.cfe.milp.network import ReluNet
    from geco_ray.cfe.milp.proof import prove

    around = Neighbourhood.of(factual, task.lower, task.upper)
    net = ReluNet.from_mlp(task.model)
    return prove(net, around, margin + MARGIN_SLACK, incumbent, nodes, lower_bound=lower_bound)


def _calibrated(key: BaseKey, task: GenerationTask) -> float:
    from geco_ray.cfe.methods.apas.calibration import calibrate_radius, replica_seeds

    return calibrate_radius(task.model, task.update_x, task.update_y, replica_seeds(key)).value


@METHODS.register("apas", title="APΔS", options=ApasOptions)
def prepare(task: GenerationTask, options: ApasOptions) -> Prepared:
    """Calibrate the radius and draw the search sample once (Marzari et al., as set up in "Robust to Which Model
    Change?").
    """
    return Apas(task, options)
