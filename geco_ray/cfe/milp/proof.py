"""Proof that no closer point has the margin, in counted solver nodes; a closer one replaces the incumbent.

One request is one call of a pure function, so proofs can run anywhere, in parallel, and be taken up again from what an
earlier one returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from geco_ray.cfe.milp.bounds import Known, Neighbourhood, nearest_possible
from geco_ray.cfe.milp.cuts import strengthen
from geco_ray.cfe.milp.network import Floats, ReluNet
from geco_ray.cfe.milp.program import ball_program
from geco_ray.cfe.milp.solver import solve_mip
from geco_ray.cfe.milp.tighten import tighten
from geco_ray.cfe.milp.walk import Candidate, Walk

TOLERANCE = 1e-4
"""A proof shows that nothing is closer by more than this share of the distance."""

_SLACK = 1e-7  # how far below the margin a point may lie after rounding

ProofStatus = Literal["optimal", "nodes", "failed"]


@dataclass(frozen=True, eq=False)
class ProofResult:
    """What a proof came to.

    Args:
        point: the incumbent, or a closer point that the proof found (d,).
        distance: its l1 distance from the factual.
        lower_bound: no point of the box with the margin is closer than this.
        gap: ``1 - lower_bound / distance``; 0 for a distance of 0.
        nodes: branch-and-bound nodes spent in this call.
        status: ``optimal`` (the gap is at most :data:`TOLERANCE`), ``nodes`` (the budget ended first) or ``failed``
            (the solver gave up; the bound holds all the same).
        improved: whether ``point`` is not the incumbent that was given.
    """

    point: Floats
    distance: float
    lower_bound: float
    gap: float
    nodes: int
    status: ProofStatus
    improved: bool


def prove(
    net: ReluNet,
    around: Neighbourhood,
    logit: float,
    incumbent: Floats,
    nodes: int | None,
    *,
    lower_bound: float = 0.0,
) -> ProofResult:
    """Bound the distance of the closest point with at least ``logit`` from below, or find a closer one.

    Args:
        net: the network.
        around: the factual and the box.
        logit: the margin, slack included.
        incumbent: a point of the box that has it (d,).
        nodes: budget of solver nodes; ``None`` has no end.
        lower_bound: what an earlier call has shown.
    """
    best = Candidate(incumbent, around.distance(incumbent))
    walk = Walk(net, around, np.empty((0, len(incumbent))))
    bound = max(lower_bound, nearest_possible(net, around, logit, best.distance))
    spent, status, stop_early = 0, "nodes", True
    known: list[Known] = []
    while nodes is None or spent < nodes:
        target = best.distance * (1 - TOLERANCE)
        if bound >= target:
            break
        radius = target - around.offset
        tight = tighten(net, around, radius, logit, bound - around.offset, known)
        if tight.known is None:
            bound = target
            break
        bound = min(max(bound, around.offset + tight.beyond), target)
        known = tight.known
        ball = ball_program(net, around, radius, logit=logit, beyond=bound - around.offset, known=known)
        ball = strengthen(ball, radius, 2 * len(around.origin))
        left = None if nodes is None else nodes - spent
        result = solve_mip(ball.program, nodes=left, gap=TOLERANCE / 10, first_only=stop_early)
        spent += max(1, result.nodes)
        bound = min(max(bound, around.offset + result.bound), target)
        if result.values is None:
            status = result.status
            break
        closer = _closer(walk, result.values, logit, best)
        if closer is None and not stop_early:
            status = "failed"
            break
        # A solution that does not stand up in the network itself: let the solver finish without stopping at it.
        best, stop_early = closer or best, closer is not None
    gap = 1 - bound / best.distance if best.distance > 0 else 0.0
    done = gap <= TOLERANCE * (1 + 1e-9)
    final: ProofStatus = "optimal" if done else "failed" if status == "failed" else "nodes"
    return ProofResult(best.point, best.distance, bound, max(gap, 0.0), spent, final, best.point is not incumbent)


def _closer(walk: Walk, values: Floats, logit: float, best: Candidate) -> Candidate | None:
    d = len(walk.around.origin)
    point = walk.around.clip(walk.around.origin + values[:d] - values[d : 2 * d])
    found = walk.improve(point, logit)
    if found is None and walk.net.logit(point[None])[0] >= logit - _SLACK:
        found = Candidate(point, walk.around.distance(point))
    return found if found is not None and found.distance < best.distance else None
