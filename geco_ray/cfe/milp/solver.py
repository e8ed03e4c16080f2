"""The open solver HiGHS on dense arrays: one linear program, or one mixed-integer program with a node budget.

One thread, a fixed seed and no clock, so that the same program has the same answer on every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import highspy
import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.milp.network import Bools, Floats

INFINITY = float(highspy.kHighsInf)
# The class below ``highspy.Highs``: the latter prints a banner while it installs callbacks, which we do not use.
_BARE: Any = highspy.Highs.__mro__[1]
MipStatus = Literal["optimal", "infeasible", "nodes", "failed"]


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise ``cost @ v + constant`` with ``lower <= v <= upper`` and ``row_lower <= matrix @ v <= row_upper``."""

    cost: Floats
    lower: Floats
    upper: Floats
    matrix: Floats
    row_lower: Floats
    row_upper: Floats
    integer: Bools | None = None
    constant: float = 0.0


@dataclass(frozen=True, eq=False)
class MipResult:
    """Outcome of a mixed-integer solve.

    Args:
        status: ``optimal``, ``infeasible``, ``nodes`` (the node budget ended it) or ``failed``.
        values: best solution found, or ``None``.
        objective: its cost, infinite without one.
        bound: no solution costs less; infinite when infeasible.
        nodes: branch-and-bound nodes spent.
    """

    status: MipStatus
    values: Floats | None
    objective: float
    bound: float
    nodes: int


def quiet_solver() -> Any:
    """A HiGHS instance that prints nothing, runs on one thread and always takes the same decisions."""
    solver = _BARE()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 0)
    return solver


def load(solver: Any, program: Program) -> None:
    """Replace the solver's model by ``program``."""
    rows, columns = program.matrix.shape
    row_of, index = np.nonzero(program.matrix)
    start = np.concatenate([[0], np.cumsum(np.bincount(row_of, minlength=rows))])
    integer = np.zeros(columns, bool) if program.integer is None else program.integer
    solver.passModel(
        columns,
        rows,
        len(index),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        program.constant,
        program.cost,
        program.lower,
        program.upper,
        program.row_lower,
        program.row_upper,
        start[:-1].astype(np.int32) if rows else np.zeros(0, np.int32),
        index.astype(np.int32),
        program.matrix[row_of, index],
        integer.astype(np.int32),
    )


def add_rows(solver: Any, lines: Floats, sides: Floats) -> None:
    """Add the rows ``lines @ v <= sides`` to the solver's model and keep its basis."""
    row_of, index = np.nonzero(lines)
    start = np.concatenate([[0], np.cumsum(np.bincount(row_of, minlength=len(lines)))])[:-1]
    solver.addRows(
        len(lines),
        np.full(len(lines), -INFINITY),
        sides,
        len(index),
        start.astype(np.int32),
        index.astype(np.int32),
        lines[row_of, index],
    )


def solve_mip(program: Program, *, nodes: int | None = None, gap: float = 1e-6, first_only: bool = False) -> MipResult:
    """Solve to a relative gap of ``gap``, or until ``nodes`` nodes are spent (``None``: no limit).

    Args:
        first_only: stop at the first solution.
    """
    solver = quiet_solver()
    load(solver, program)
    solver.setOptionValue("mip_rel_gap", gap)
    solver.setOptionValue("mip_abs_gap", 1e-9)
    if nodes is not None:
        solver.setOptionValue("mip_max_nodes", max(0, nodes))
    if first_only:
        solver.setOptionValue("mip_max_improving_sols", 1)
    solver.run()
    return _mip_result(solver)


def _mip_result(solver: Any) -> MipResult:
    status, info = solver.getModelStatus(), solver.getInfo()
    has_point = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values: NDArray[np.float64] | None = np.array(solver.getSolution().col_value) if has_point else None
    objective = float(info.objective_function_value) if has_point else float("inf")
    nodes = max(0, int(info.mip_node_count))
    if status == highspy.HighsModelStatus.kOptimal:
        return MipResult("optimal", values, objective, float(info.mip_dual_bound), nodes)
    if status == highspy.HighsModelStatus.kInfeasible:
        return MipResult("infeasible", None, float("inf"), float("inf"), nodes)
    if status == highspy.HighsModelStatus.kSolutionLimit:
        return MipResult("nodes", values, objective, float(info.mip_dual_bound), nodes)
    return MipResult("failed", values, objective, -float("inf"), nodes)
