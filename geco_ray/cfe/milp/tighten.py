"""Tighter unit bounds before a proof: the range of each open unit over the relaxed program, by linear programs.

Only points within the radius that can have the margin count, so the ranges shrink well below those over the ball; units
become stable, their relaxation gets tighter, and the next round starts from there. With the interpolation between the
ball's corners in the program this pays many times over on hard requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np

from geco_ray.cfe.milp.bounds import Known, Neighbourhood
from geco_ray.cfe.milp.cuts import strengthen
from geco_ray.cfe.milp.network import Floats, ReluNet
from geco_ray.cfe.milp.program import Ball, ball_program
from geco_ray.cfe.milp.solver import load, quiet_solver

_ROUNDS = 8
_WORTH = 0.02  # another round is worth it while the open units' ranges shrink by this share
_NEGLIGIBLE = 1e-3  # a bound that a known point comes this close to (as a share of the range) is not worth a program
_SAFETY = 1e-7


@dataclass(frozen=True, eq=False)
class Tightened:
    """Bounds of the hidden layers that every point of interest keeps; no such point is closer to the origin than
    ``beyond``. ``known`` is ``None`` if there is no such point. ``programs`` counts linear programs.
    """

    known: list[Known] | None
    beyond: float
    programs: int


def tighten(
    net: ReluNet,
    around: Neighbourhood,
    radius: float,
    logit: float,
    beyond: float,
    known: Sequence[Known] = (),
    rounds: int = _ROUNDS,
) -> Tightened:
    """Tighten for the points within ``radius`` of the origin that have at least ``logit``."""
    bounds, programs = list(known), 0
    for _ in range(rounds):
        ball = ball_program(net, around, radius, logit=logit, beyond=beyond, known=bounds)
        ball = strengthen(ball, radius, 2 * len(around.origin))
        solver = _relaxed(ball)
        solver.run()
        programs += 1
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return Tightened(None, radius, programs)
        if status != highspy.HighsModelStatus.kOptimal:
            break
        beyond = max(beyond, float(solver.getInfo().objective_function_value) - _SAFETY)
        before = _width(ball.bounds)
        low, high, spent = _ranges(ball, solver)
        programs += spent
        if (low > high).any():
            return Tightened(None, radius, programs)
        bounds = _updated(ball, low, high)
        if before - _width(bounds) <= _WORTH * before:
            break
    return Tightened(bounds, beyond, programs)


def _relaxed(ball: Ball) -> Any:
    solver = quiet_solver()
    solver.setOptionValue("presolve", "off")
    # Only the cost changes from one program to the next, so the last solution stays feasible: primal simplex.
    solver.setOptionValue("simplex_strategy", 4)
    load(solver, replace(ball.program, integer=None))
    return solver


def _ranges(ball: Ball, solver: Any) -> tuple[Floats, Floats, int]:
    """Lower and upper bounds of the open units' pre-activations, and how many programs they took."""
    units, columns = ball.places[:, 1], np.arange(len(ball.program.cost), dtype=np.int32)
    pairs = list(zip(ball.places[:, 0], units, strict=True))
    low = np.array([ball.bounds[depth][0][unit] for depth, unit in pairs])
    high = np.array([ball.bounds[depth][1][unit] for depth, unit in pairs])
    near = _NEGLIGIBLE * (high - low)
    lowest_seen, highest_seen = np.full(len(low), np.inf), np.full(len(low), -np.inf)
    programs = 0

    def look() -> None:
        value = ball.slopes @ np.array(solver.getSolution().col_value) + ball.offsets
        np.minimum(lowest_seen, value, out=lowest_seen)
        np.maximum(highest_seen, value, out=highest_seen)

    look()
    for place in range(len(low)):
        for sign in (1.0, -1.0):
            seen = lowest_seen[place] - low[place] if sign > 0 else high[place] - highest_seen[place]
            if seen <= near[place]:
                continue
            solver.changeColsCost(len(columns), columns, sign * ball.slopes[place])
            solver.run()
            programs += 1
            if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                continue
            look()
            found = sign * float(solver.getInfo().objective_function_value) + ball.offsets[place]
            if sign > 0:
                low[place] = max(low[place], found - _SAFETY)
            else:
                high[place] = min(high[place], found + _SAFETY)
    return low, high, programs


def _updated(ball: Ball, low: Floats, high: Floats) -> list[Known]:
    bounds = [(below.copy(), above.copy()) for below, above in ball.bounds]
    for (depth, unit), least, most in zip(ball.places, low, high, strict=True):
        bounds[depth][0][unit], bounds[depth][1][unit] = least, most
    return bounds


def _width(bounds: Sequence[Known]) -> float:
    """Total range of the units that can still change sign."""
    return float(sum((above - below)[(below < 0) & (above > 0)].sum() for below, above in bounds))
