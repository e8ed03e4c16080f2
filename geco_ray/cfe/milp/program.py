"""The network within a ball as a mixed-integer program with bounds per unit.

Only units that can change sign in the ball get a binary, and among the last layer's only those that raise the logit.
Instead of a big M every such unit has its own bounds and, which does most of the work, stays below the interpolation
of its convex upper bound between the corners of the ball (see :mod:`geco_ray.cfe.milp.bounds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.milp.bounds import Known, Neighbourhood, UnitBounds, network_bounds
from geco_ray.cfe.milp.network import Floats, ReluNet
from geco_ray.cfe.milp.solver import INFINITY, Program


@dataclass
class _Rows:
    """Rows ``lower <= line @ v <= upper`` as they are collected."""

    columns: int
    lines: list[Floats] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def add(self, line: Floats, lower: float, upper: float) -> None:
        self.lines.append(line)
        self.lower.append(lower)
        self.upper.append(upper)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Where the columns are: moves up and down (2 d), then open units and their binaries, layer after layer."""

    units: list[dict[int, int]]
    binaries: list[dict[int, int]]
    columns: int


def _lay_out(net: ReluNet, bounds: list[UnitBounds], moves: int) -> _Layout:
    units, binaries, at = [], [], moves
    for depth, layer in enumerate(bounds[:-1]):
        open_units = np.flatnonzero((layer.low < 0) & (layer.high > 0)).tolist()
        last = depth == net.hidden_layers - 1
        switched = [unit for unit in open_units if not last or net.weights[-1][0, unit] > 0]
        units.append({unit: at + place for place, unit in enumerate(open_units)})
        at += len(open_units)
        binaries.append({unit: at + place for place, unit in enumerate(switched)})
        at += len(switched)
    return _Layout(units, binaries, at)


@dataclass(frozen=True, eq=False)
class Ball:
    """The program, and the pre-activations of its open units in terms of its columns.

    Args:
        program: see :func:`ball_program`.
        bounds: bounds of the hidden layers, first layer first.
        places: layer and unit of each open unit (k, 2).
        columns: the column of its activation and of its binary, -1 without one (k, 2).
        slopes: their pre-activations are ``slopes @ v + offsets``, (k, columns).
        offsets: (k,).
    """

    program: Program
    bounds: list[Known]
    places: NDArray[np.int64]
    columns: NDArray[np.int64]
    slopes: Floats
    offsets: Floats


def ball_program(
    net: ReluNet,
    around: Neighbourhood,
    radius: float,
    *,
    logit: float | None,
    beyond: float = 0.0,
    known: Sequence[Known] = (),
) -> Ball:
    """Everything within ``radius`` of ``around.origin``; the first 2 d columns are the moves up and down.

    Args:
        logit: minimise the distance from the origin subject to at least this logit; ``None``: minimise the negative
            logit instead.
        beyond: no point closer to the origin than this is of interest.
        known: bounds of the hidden layers that every point of interest keeps.
    """
    bounds = network_bounds(net, around, radius, known)
    d = len(around.origin)
    layout = _lay_out(net, bounds, 2 * d)
    rows = _Rows(layout.columns)
    open_slopes, open_offsets = [], []
    slopes, offset = np.zeros((d, layout.columns)), around.origin
    slopes[:, :d], slopes[:, d : 2 * d] = np.eye(d), -np.eye(d)
    for depth in range(net.hidden_layers):
        z, z0 = net.weights[depth] @ slopes, net.weights[depth] @ offset + net.biases[depth]
        open_slopes.append(z[list(layout.units[depth])])
        open_offsets.append(z0[list(layout.units[depth])])
        slopes, offset = _activations(rows, layout, bounds[depth], depth, z, z0, radius)
    output, output0 = net.weights[-1][0] @ slopes, float(net.weights[-1][0] @ offset + net.biases[-1][0])
    if logit is not None:
        rows.add(output, logit - output0, INFINITY)
    places = [(depth, unit) for depth, units in enumerate(layout.units) for unit in units]
    columns = [(layout.units[depth][unit], layout.binaries[depth].get(unit, -1)) for depth, unit in places]
    return Ball(
        _finish(rows, layout, bounds, around, (beyond, radius), None if logit is not None else (-output, -output0)),
        [(layer.low, layer.high) for layer in bounds[:-1]],
        np.array(places, dtype=np.int64).reshape(-1, 2),
        np.array(columns, dtype=np.int64).reshape(-1, 2),
        np.concatenate(open_slopes),
        np.concatenate(open_offsets),
    )


def _finish(
    rows: _Rows,
    layout: _Layout,
    bounds: list[UnitBounds],
    around: Neighbourhood,
    radii: tuple[float, float],
    goal: tuple[Floats, float] | None,
) -> Program:
    """Add the ball itself and the columns' bounds; ``goal`` (cost and constant) replaces the distance."""
    moves = 2 * len(around.origin)
    moved = np.zeros(layout.columns)
    moved[:moves] = 1.0
    rows.add(moved, *radii)
    upper = np.ones(layout.columns)
    upper[:moves] = np.minimum(np.concatenate([around.up, around.down]), radii[1])
    integer = np.zeros(layout.columns, bool)
    for layer, units, binaries in zip(bounds[:-1], layout.units, layout.binaries, strict=True):
        upper[list(units.values())] = layer.high[list(units)]
        integer[list(binaries.values())] = True
    cost, constant = goal if goal is not None else (moved, 0.0)
    matrix, low, high = np.array(rows.lines), np.array(rows.lower), np.array(rows.upper)
    return Program(cost, np.zeros(layout.columns), upper, matrix, low, high, integer, constant)


def _activations(
    rows: _Rows, layout: _Layout, layer: UnitBounds, depth: int, z: Floats, z0: Floats, radius: float
) -> tuple[Floats, Floats]:
    """One layer: its rows are added, its activations returned as an affine function of the columns."""
    slopes = np.where(layer.low[:, None] >= 0, z, 0.0)
    offset = np.where(layer.low >= 0, z0, 0.0)
    corners = np.maximum(layer.corners, 0.0)
    for unit, column in layout.units[depth].items():
        slopes[unit] = offset[unit] = 0.0
        slopes[unit, column] = 1.0
        binary = layout.binaries[depth].get(unit)
        if binary is None or depth < len(layout.units) - 1:
            rows.add(z[unit] - slopes[unit], -INFINITY, -z0[unit])
        if binary is None:
            continue
        line = slopes[unit] - z[unit]
        line[binary] = -layer.low[unit]
        rows.add(line, -INFINITY, z0[unit] - layer.low[unit])
        line = slopes[unit].copy()
        line[binary] = -layer.high[unit]
        rows.add(line, -INFINITY, 0.0)
        for at in corners[:, unit]:
            line = slopes[unit].copy()
            line[: len(at) - 1] = -(at[1:] - at[0]) / radius
            rows.add(line, -INFINITY, at[0])
    return slopes, offset
