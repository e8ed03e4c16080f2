"""The closest point with a given logit, found by walking through the linear regions of the network.

Where the activation pattern is fixed the network is affine, and the closest point (in l1) of the region that has the
margin is a linear program of 2 d columns. The walk starts in the region of some point with the margin, solves, flips
the units whose pre-activation is 0 at the solution (so the solution lies in the next region too and the distance never
grows), and ends when it meets a region it has seen. It finds, it does not prove: see :mod:`geco_ray.cfe.milp.proof`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from geco_ray.cfe.milp.bounds import Neighbourhood, network_bounds
from geco_ray.cfe.milp.network import Bools, Floats, ReluNet
from geco_ray.cfe.milp.solver import INFINITY, quiet_solver

ON_BOUNDARY = 1e-7
MAX_PROGRAMS = 400
_SAMPLES = 65
_BISECTIONS = 30


@dataclass(frozen=True, eq=False)
class Candidate:
    """A point (d,) of the box that has the margin, and its l1 distance from the factual."""

    point: Floats
    distance: float


class Walk:
    """Finds close points with a margin for one factual; keeps its solver and counts its linear programs.

    Args:
        net: the network.
        around: the factual and the box.
        rows: points of the box that starts may be made from, usually the training rows (n, d).
        starts: how many of the nearest rows with the margin a search starts from.
    """

    def __init__(self, net: ReluNet, around: Neighbourhood, rows: Floats, *, starts: int = 12) -> None:
        self.net, self.around, self.starts = net, around, starts
        order = np.argsort(np.abs(rows - around.origin).sum(axis=1), kind="stable")
        self._rows, self._logits = rows[order], net.logit(rows[order])
        self._room = np.concatenate([around.up, around.down])
        self._solver = quiet_solver()
        self._solver.setOptionValue("presolve", "off")
        self.programs = 0

    def find(self, logit: float, known: Sequence[Floats] = (), max_programs: int = MAX_PROGRAMS) -> Candidate | None:
        """The closest point found with at least ``logit``, or ``None`` if no start has it.

        Args:
            logit: the smallest logit allowed.
            known: further points of the box; those with the margin are starts, the others are pushed towards the
                nearest row that has it.
            max_programs: most linear programs of this search.
        """
        best: Candidate | None = None
        seen: set[bytes] = set()
        end = self.programs + max_programs
        for start in self._starting_points(logit, known):
            best = self._follow(start, logit, best, seen, end)
        return best

    def improve(self, point: Floats, logit: float) -> Candidate | None:
        """Walk on from one ``point`` of the box that has the margin."""
        return self._follow(point, logit, None, set(), self.programs + MAX_PROGRAMS)

    def _starting_points(self, logit: float, known: Sequence[Floats]) -> list[Floats]:
        targets = self._rows[self._logits >= logit][: self.starts]
        points = [self._crossing(self.around.origin, target, logit) for target in targets]
        for point in known:
            if self.net.logit(point[None])[0] >= logit:
                points.append(point)
            elif len(targets):
                points.append(self._crossing(point, targets[0], logit))
        return sorted(points, key=self.around.distance)

    def _crossing(self, start: Floats, target: Floats, logit: float) -> Floats:
        """The first point on the way from ``start`` to ``target`` (which has the margin) that has it."""
        shares = np.linspace(0.0, 1.0, _SAMPLES)
        reached = self.net.logit(start + shares[:, None] * (target - start)) >= logit
        first = int(np.argmax(reached)) if reached.any() else _SAMPLES - 1
        low, high = shares[max(first - 1, 0)], shares[first]
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if self.net.logit((start + middle * (target - start))[None])[0] >= logit:
                high = middle
            else:
                low = middle
        return np.asarray(start + high * (target - start))

    def _follow(
        self, start: Floats, logit: float, best: Candidate | None, seen: set[bytes], end: int
    ) -> Candidate | None:
        pattern = self.net.preactivations(start) > 0
        ahead = self.around.distance(start)
        stable = self._stable(ahead - self.around.offset)
        while pattern.tobytes() not in seen and self.programs < end:
            seen.add(pattern.tobytes())
            point = self._closest(pattern, logit, stable)
            if point is None:
                break
            distance = self.around.distance(point)
            if best is None or distance < best.distance:
                best = Candidate(point, distance)
            z = self.net.preactivations(point)
            pattern = np.where(np.abs(z) < ON_BOUNDARY, ~pattern, z > 0)
        return best

    def _stable(self, radius: float) -> Bools:
        """Units that cannot change sign within ``radius``: their rows are left out of the programs."""
        layers = network_bounds(self.net, self.around, radius * (1 + 1e-9) + 1e-9, hidden_only=True)
        return np.concatenate([(layer.low >= 0) | (layer.high <= 0) for layer in layers])

    def _closest(self, pattern: Bools, logit: float, stable: Bools) -> Floats | None:
        """The closest point of one region with at least ``logit``; ``None`` if the solver finds none."""
        matrix, offset = self.net.region(pattern)
        value = matrix @ self.around.origin + offset
        low = np.append(np.where(pattern, -value[:-1], -INFINITY), logit - value[-1])
        high = np.append(np.where(pattern, INFINITY, -value[:-1]), INFINITY)
        kept = np.append(~stable, True)
        split = np.concatenate([matrix[kept], -matrix[kept]], axis=1)
        rows, columns = split.shape
        self._solver.passModel(
            columns,
            rows,
            split.size,
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMinimize),
            0.0,
            np.ones(columns),
            np.zeros(columns),
            self._room,
            low[kept],
            high[kept],
            np.arange(rows, dtype=np.int32) * columns,
            np.tile(np.arange(columns, dtype=np.int32), rows),
            split.ravel(),
            np.zeros(columns, dtype=np.int32),
        )
        self._solver.run()
        self.programs += 1
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        moves = np.array(self._solver.getSolution().col_value)
        return self.around.clip(self.around.origin + moves[: columns // 2] - moves[columns // 2 :])
