"""The highest logit in the training box: it tells whether a margin can be reached at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geco_ray.cfe.milp.bounds import Neighbourhood, network_bounds
from geco_ray.cfe.milp.network import Floats, ReluNet
from geco_ray.cfe.milp.program import ball_program
from geco_ray.cfe.milp.solver import solve_mip


@dataclass(frozen=True, eq=False)
class Reach:
    """``point`` (d,) of the box has the logit ``reached``; no point of the box has more than ``ceiling``."""

    point: Floats
    reached: float
    ceiling: float


def highest_logit(net: ReluNet, lower: Floats, upper: Floats, rows: Floats, nodes: int) -> Reach:
    """Search the box from ``lower`` to ``upper`` (d,) for its highest logit, with a budget of solver nodes.

    Args:
        rows: points of the box to begin with, (n, d), n >= 1.
    """
    logits = net.logit(rows)
    point, reached = rows[int(logits.argmax())], float(logits.max())
    box = Neighbourhood.of((lower + upper) / 2, lower, upper)
    ceiling = float(network_bounds(net, box, box.widest)[-1].high[0])
    result = solve_mip(ball_program(net, box, box.widest, logit=None).program, nodes=nodes, gap=1e-6)
    if result.status in ("optimal", "nodes"):
        ceiling = min(ceiling, -result.bound)
    if result.values is not None:
        d = len(lower)
        found = box.clip(box.origin + result.values[:d] - result.values[d : 2 * d])
        logit = float(net.logit(found[None])[0])
        if logit > reached:
            point, reached = found, logit
    return Reach(np.asarray(point), reached, max(ceiling, reached))
