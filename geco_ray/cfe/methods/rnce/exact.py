"""The robustness test of RNCE: two vectorised bounds decide nearly all rows, an exact solver the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.methods.rnce.interval import NetworkBox, lower_bound, upper_bound
from geco_ray.cfe.milp.network import Bools, Floats
from geco_ray.cfe.milp.solver import INFINITY, Program, solve_mip

DECIDED_BY = ("lower_bound", "upper_bound", "solver")


@dataclass(frozen=True, eq=False)
class RobustTest:
    """Which rows pass, bool (n,), and what decided it: index into :data:`DECIDED_BY`, int8 (n,)."""

    passes: Bools
    decided_by: NDArray[np.int8]


def robust_rows(box: NetworkBox, x: Floats, chunk: int = 8192) -> RobustTest:
    """Test whether the smallest logit over ``box`` is above 0 at each row of ``x`` (n, d).

    Memory is bounded by ``chunk`` rows at a time.
    """
    x = np.asarray(x, dtype=np.float64)
    passes, decided = np.zeros(len(x), bool), np.full(len(x), 2, np.int8)
    for begin in range(0, len(x), chunk):
        part = slice(begin, begin + chunk)
        decided[part][box.net.logit(x[part]) <= 0] = 1
        open_rows = begin + np.flatnonzero(decided[part] == 2)
        low = lower_bound(box, x[open_rows])
        passes[open_rows], decided[open_rows[low > 0]] = low > 0, 0
        open_rows = open_rows[low <= 0]
        decided[open_rows[upper_bound(box, x[open_rows]) <= 0]] = 1
    for row in np.flatnonzero(decided == 2):
        passes[row] = smallest_logit(box, x[row]) > 0
    return RobustTest(passes, decided)


def smallest_logit(box: NetworkBox, row: Floats) -> float:
    """The exact smallest logit over ``box`` at one ``row`` (d,), to the solver's tolerance of about 1e-6.

    A later unit's activation ``h`` may take any value between the ReLUs of its lowest and highest pre-activation.
    The lower side is convex and needs no binary; the upper side needs one where that ReLU can bend, and only for
    units that can lower the logit by being high.

    Raises:
        RuntimeError: the solver failed.
    """
    result = solve_mip(_minimum_program(box, row[None]), gap=1e-9)
    if result.status != "optimal":
        raise RuntimeError(f"the exact robustness test ended with status {result.status}")
    return result.objective


def _minimum_program(box: NetworkBox, x: Floats) -> Program:
    """Columns: activations of all layers, then one binary per bending unit (0 keeps its activation at 0)."""
    first = box.first_activations(x)
    ranges = box.ranges(first)
    widths = [len(bias) for bias in box.net.biases[:-1]]
    weight, offset = box.output_map()
    lower = np.concatenate([first.low[0], *(np.maximum(r.lowest.low[0], 0.0) for r in ranges)])
    upper = np.concatenate([first.high[0], *(np.maximum(r.highest.high[0], 0.0) for r in ranges)])
    rows: list[tuple[Floats, float]] = []  # (coefficients, right side) of "coefficients @ v <= right side"
    bends: list[tuple[int, Floats, float, float, float]] = []
    for layer in range(1, len(widths)):
        before, here = sum(widths[: layer - 1]), sum(widths[:layer])
        inputs = slice(before, here)
        (low_w, low_b), (high_w, high_b) = box.lowest_map(layer), box.highest_map(layer)
        last = layer == len(widths) - 1
        for unit in range(widths[layer]):
            line = np.zeros(sum(widths))
            line[inputs], line[here + unit] = low_w[unit], -1.0
            rows.append((line, -low_b[unit]))
            least, most = ranges[layer - 1].highest.low[0, unit], ranges[layer - 1].highest.high[0, unit]
            if most <= 0 or (last and weight[unit] >= 0):
                continue
            line = np.zeros(sum(widths))
            line[inputs], line[here + unit] = -high_w[unit], 1.0
            if least >= 0:
                rows.append((line, high_b[unit]))
            else:
                bends.append((here + unit, line, high_b[unit], least, most))
    return _assemble(np.concatenate([np.zeros(sum(widths[:-1])), weight]), offset, lower, upper, rows, bends)


def _assemble(
    cost: Floats,
    constant: float,
    lower: Floats,
    upper: Floats,
    rows: list[tuple[Floats, float]],
    bends: list[tuple[int, Floats, float, float, float]],
) -> Program:
    """Add a binary ``t`` per bend: ``h <= most t`` and ``h <= highest pre-activation - least (1 - t)``."""
    columns, extra = len(cost), len(bends)
    matrix = np.zeros((len(rows) + 2 * extra, columns + extra))
    right = np.zeros(len(matrix))
    for at, (line, side) in enumerate(rows):
        matrix[at, :columns], right[at] = line, side
    for at, (column, line, offset, least, most) in enumerate(bends):
        row = len(rows) + 2 * at
        matrix[row, column], matrix[row, columns + at] = 1.0, -most
        matrix[row + 1, :columns], matrix[row + 1, columns + at] = line, -least
        right[row + 1] = offset - least
    return Program(
        np.concatenate([cost, np.zeros(extra)]),
        np.concatenate([lower, np.zeros(extra)]),
        np.concatenate([upper, np.ones(extra)]),
        matrix,
        np.full(len(matrix), -INFINITY),
        right,
        np.arange(columns + extra) >= columns,
        constant,
    )
