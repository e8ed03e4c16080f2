"""Growing spheres: random points in ever wider shells around a centre until one is accepted.

Shared by RobX (for its start) and BetaRCE (both stages). Shell i lies between the radii i * step and (i + 1) * step; a
point is a direction of unit p-norm times a radius that is uniform between the two (so not uniform in volume).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.methods.base import Deadline
from geco_ray.cfe.search.streams import Stream

Accept = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
_CHUNK_VALUES = 1 << 18  # numbers worked on at a time: a few megabytes


@dataclass(frozen=True)
class Shells:
    """How to search: ``norm`` 1 or 2, ``samples`` points a shell, radii growing by ``step``, ``limit`` shells.

    With ``bounds`` (lower and upper, (d,) each) every point is clipped to them before it is judged.
    """

    norm: int
    samples: int
    step: float
    limit: int
    bounds: tuple[NDArray[np.floating], NDArray[np.floating]] | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """End of one search: the point or ``None``, the shells drawn, and whether the clock ended it."""

    point: NDArray[np.float64] | None
    shells: int
    timed_out: bool = False


def grow(
    centres: NDArray[np.float64],
    streams: Sequence[Stream],
    accept: Accept,
    shells: Shells,
    deadline: Deadline,
) -> list[Found]:
    """For each centre the accepted point closest to it, from the first shell that has one.

    Args:
        centres: float64 (k, d).
        streams: one per centre.
        accept: tells for rows (m, d) which are accepted, each row by itself.
        shells: the search.
        deadline: safety net.
    """
    results: dict[int, Found] = {}
    active = list(range(len(centres)))
    at_once = max(1, _CHUNK_VALUES // (shells.samples * max(1, centres.shape[1])))
    high = 0.0
    for shell in range(shells.limit):
        if not active or deadline.over():
            break
        low, high = high, high + shells.step
        for first in range(0, len(active), at_once):
            part = active[first : first + at_once]
            offsets = [streams[i].take(("shell", shell), _drawer(low, high, shells, centres.shape[1])) for i in part]
            for i, point in zip(part, _nearest(centres[part], offsets, accept, shells), strict=True):
                if point is not None:
                    results[i] = Found(point, shell + 1)
        active = [i for i in active if i not in results]
    late = deadline.over()
    return [results.get(i) or Found(None, shells.limit, late) for i in range(len(centres))]


def _drawer(low: float, high: float, shells: Shells, d: int) -> Callable[[np.random.Generator], NDArray[np.float64]]:
    """Draws the offsets (samples, d) of one shell: all normals first, then all radii."""

    def draw(generator: np.random.Generator) -> NDArray[np.float64]:
        normal = generator.standard_normal((shells.samples, d))
        radius = low + generator.random(shells.samples) * (high - low)
        size = np.abs(normal).sum(axis=1) if shells.norm == 1 else np.sqrt((normal * normal).sum(axis=1))
        normal *= (radius / (size + 1e-12))[:, None]
        return normal

    return draw


def _nearest(
    centres: NDArray[np.float64], offsets: list[NDArray[np.float64]], accept: Accept, shells: Shells
) -> list[NDArray[np.float64] | None]:
    """The closest accepted candidate of each centre (k, d) in one shell, or ``None``."""
    candidates = np.stack(offsets) + centres[:, None]
    if shells.bounds is not None:
        np.clip(candidates, shells.bounds[0], shells.bounds[1], out=candidates)
    accepted = accept(candidates.reshape(-1, centres.shape[1])).reshape(candidates.shape[:2])
    points: list[NDArray[np.float64] | None] = []
    for centre, rows, good in zip(centres, candidates, accepted, strict=True):
        if not good.any():
            points.append(None)
            continue
        gap = rows[good] - centre
        distance = np.abs(gap).sum(axis=1) if shells.norm == 1 else (gap * gap).sum(axis=1)
        points.append(rows[good][int(np.argmin(distance))].copy())
    return points
