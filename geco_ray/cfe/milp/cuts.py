"""Cuts for units whose inputs hit the edge of the box: the closed-form hull of one ReLU over a box with a budget.

Let a unit be ``h = max(0, s @ v + b)`` with inputs ``0 <= v <= c``, of which the moves (the first 2 d columns) add up
to at most the radius ``D``, and let ``t`` be its binary. Splitting ``v`` into the part that counts while the unit is on
and the part while it is off gives, for every price ``p >= 0`` of the budget,

    h <= (b + p D) t + sum_j max over v_j^on of (s_j - p_j) v_j^on
    with  max(0, v_j - (1 - t) c_j) <= v_j^on <= min(v_j, t c_j)

and ``p_j = p`` for moves, 0 for other inputs (Anderson et al., strong formulations for ReLU, with a budget added). At a
given point the best price is 0 or one of the slopes, so the most violated cut of every unit is found in one pass.
"""

from __future__ import annotations

from dataclasses import replace

import highspy
import numpy as np

from geco_ray.cfe.milp.network import Floats
from geco_ray.cfe.milp.program import Ball
from geco_ray.cfe.milp.solver import INFINITY, Program, add_rows, load, quiet_solver

_ROUNDS = 15
_VIOLATION = 1e-5


def strengthen(ball: Ball, radius: float, moves: int) -> Ball:
    """Add the cuts of a cutting-plane loop on the relaxed program; ``moves`` is 2 d.

    All of them are kept: the bound stalls for some rounds before it rises, and tightening looks in other directions.
    """
    solver = quiet_solver()
    solver.setOptionValue("presolve", "off")
    load(solver, replace(ball.program, integer=None))
    lines, sides = np.zeros((0, len(ball.program.cost))), np.zeros(0)
    for _ in range(_ROUNDS):
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            break
        point = np.array(solver.getSolution().col_value)
        found = [_cut(ball, place, point, radius, moves) for place in range(len(ball.places))]
        new = [cut for cut in found if cut is not None]
        if not new:
            break
        block, limits = np.array([line for line, _ in new]), np.array([side for _, side in new])
        add_rows(solver, block, limits)
        lines, sides = np.concatenate([lines, block]), np.concatenate([sides, limits])
    return replace(ball, program=with_rows(ball.program, lines, sides))


def with_rows(program: Program, lines: Floats, sides: Floats) -> Program:
    """``program`` with the rows ``lines @ v <= sides`` added."""
    if not len(sides):
        return program
    return replace(
        program,
        matrix=np.concatenate([program.matrix, lines]),
        row_lower=np.concatenate([program.row_lower, np.full(len(sides), -INFINITY)]),
        row_upper=np.concatenate([program.row_upper, sides]),
    )


def _cut(ball: Ball, place: int, point: Floats, radius: float, moves: int) -> tuple[Floats, float] | None:
    """The most violated cut ``line @ v <= side`` of one open unit, if there is one."""
    column, binary = ball.columns[place]
    if binary < 0:
        return None
    slopes, offset, room = ball.slopes[place], float(ball.offsets[place]), ball.program.upper
    used = np.flatnonzero((room > 0) & ((slopes != 0) | (np.arange(len(slopes)) < moves)))
    slopes, room, value, on = slopes[used], room[used], point[used], float(point[binary])
    paid = used < moves
    prices = np.unique(np.concatenate([[0.0], slopes[paid & (slopes > 0)]]))
    gains = slopes - prices[:, None] * paid
    most, least = np.minimum(value, on * room), np.maximum(0.0, value - (1 - on) * room)
    limits = (offset + prices * radius) * on + (np.maximum(gains, 0.0) @ most + np.minimum(gains, 0.0) @ least)
    best = int(limits.argmin())
    if point[column] <= limits[best] + _VIOLATION * (1 + abs(point[column])):
        return None
    gain, share = gains[best], offset + prices[best] * radius
    by_value = (gain > 0) & (value <= on * room)
    by_room = (gain > 0) & ~by_value
    forced = (gain < 0) & (value > (1 - on) * room)
    line = np.zeros(len(point))
    line[used] = np.where(by_value | forced, -gain, 0.0)
    line[column] += 1.0
    line[binary] = -(share + float((gain * room)[by_room | forced].sum()))
    return line, -float((gain * room)[forced].sum())
