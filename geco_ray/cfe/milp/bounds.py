"""What a ReLU network can do within a given l1 distance of a factual.

Three facts give bounds in closed form. The points of a box within l1 distance ``r`` of a point can be explored one
coordinate after the other, best first, so a linear function has its largest value by filling up the radius. In the
split coordinates ``x = origin + up - down`` the ball is a simplex, with corners ``origin`` and ``origin +- r e_j``; a
convex function lies below its linear interpolation between the corners. And a unit behind a ReLU network has a convex
upper bound: ReLUs that count positively are kept, the others are replaced by a tangent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.milp.network import Floats, ReluNet

AnyFloats = NDArray[np.floating]
Known = tuple[Floats, Floats]
"""Lower and upper bounds (width,) of one layer's pre-activations."""


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The training box seen from a factual; distances are l1.

    Args:
        factual: the point distances are taken from (d,); it may lie outside the box.
        origin: the box's point closest to it (d,).
        offset: distance from ``factual`` to ``origin``. Every point of the box is ``offset`` farther from the
            factual than from ``origin``.
        up: how far each coordinate can rise from ``origin`` within the box (d,).
        down: how far it can fall (d,).
    """

    factual: Floats
    origin: Floats
    offset: float
    up: Floats
    down: Floats

    @classmethod
    def of(cls, factual: AnyFloats, lower: AnyFloats, upper: AnyFloats) -> Neighbourhood:
        """Around ``factual`` in the box from ``lower`` to ``upper``, all (d,), of any float type."""
        point, low, high = (np.asarray(a, dtype=np.float64) for a in (factual, lower, upper))
        origin = np.clip(point, low, high)
        return cls(point, origin, float(np.abs(origin - point).sum()), high - origin, origin - low)

    @property
    def widest(self) -> float:
        """A radius around ``origin`` that holds the whole box."""
        return float(np.maximum(self.up, self.down).sum())

    def clip(self, point: Floats) -> Floats:
        """The closest point of the box."""
        return np.clip(point, self.origin - self.down, self.origin + self.up)

    def distance(self, point: Floats) -> float:
        """Distance of ``point`` from the factual."""
        return float(np.abs(point - self.factual).sum())

    def most(self, slopes: Floats, radius: float) -> Floats:
        """Largest ``slopes @ (x - origin)`` over the box within ``radius`` of ``origin``; (k, d) in, (k,) out."""
        gain = np.abs(slopes)
        room = np.where(slopes >= 0, self.up, self.down)
        order = np.argsort(-gain, axis=1, kind="stable")
        gain, room = np.take_along_axis(gain, order, 1), np.take_along_axis(room, order, 1)
        spent = np.cumsum(room, axis=1) - room
        return np.asarray((gain * np.clip(radius - spent, 0.0, room)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class UnitBounds:
    """One layer's pre-activations over a ball.

    Args:
        low: lower bound (width,).
        high: upper bound (width,).
        corners: a convex upper bound of each unit at the corners of the ball, (variants, width, 2 d + 1): origin
            first, then ``+r e_j``, then ``-r e_j``. Its variants differ in the tangents they use.
    """

    low: Floats
    high: Floats
    corners: Floats


def network_bounds(
    net: ReluNet, around: Neighbourhood, radius: float, known: Sequence[Known] = (), *, hidden_only: bool = False
) -> list[UnitBounds]:
    """Bounds of every affine layer (the logit is the last) within ``radius`` of ``around.origin``.

    The better of interval arithmetic, a backward linear relaxation and the largest corner of the convex upper bound.

    Args:
        known: bounds of the hidden layers from elsewhere, first layer first. They may hold for a part of the ball
            only; then so does what is returned, the corners included.
        hidden_only: leave the logit out.
    """
    start = (net.weights[0] @ around.origin + net.biases[0])[:, None]
    moves = np.concatenate([np.zeros((len(start), 1)), net.weights[0], -net.weights[0]], axis=1)
    corners = start + radius * moves
    low = start[:, 0] - around.most(-net.weights[0], radius)
    high = start[:, 0] + around.most(net.weights[0], radius)
    layers = [UnitBounds(*_narrowed(low, high, known, 0), corners[None])]
    below = _tangents(layers[0], corners)
    for depth in range(1, len(net.weights) - hidden_only):
        weight, bias = net.weights[depth], net.biases[depth][:, None]
        last = layers[-1]
        above = _kept(last)
        rising, falling = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
        corners = np.stack([rising @ above + falling @ tangent + bias for tangent in below])
        floor = np.stack([rising @ tangent + falling @ above + bias for tangent in below])
        high = np.minimum(_highest(net, around, radius, layers, weight) + bias[:, 0], corners.max(axis=2).min(axis=0))
        low = np.maximum(bias[:, 0] - _highest(net, around, radius, layers, -weight), floor.min(axis=2).max(axis=0))
        layers.append(UnitBounds(*_narrowed(low, high, known, depth), corners))
        below = _tangents(layers[-1], floor[0])
    return layers


def _narrowed(low: Floats, high: Floats, known: Sequence[Known], depth: int) -> Known:
    if depth >= len(known):
        return low, high
    return np.maximum(low, known[depth][0]), np.minimum(high, known[depth][1])


def _kept(bounds: UnitBounds) -> Floats:
    """Convex upper bound of the activations at the corners, (width, corners)."""
    corners = bounds.corners[0]  # one variant: the smaller of two convex functions need not be convex
    active = np.where(bounds.low[:, None] >= 0, corners, np.maximum(corners, 0.0))
    return np.where(bounds.high[:, None] <= 0, 0.0, active)


def _tangents(bounds: UnitBounds, floor: Floats) -> list[Floats]:
    """Linear lower bounds of the activations at the corners: with a slope of 1 where the unit is mostly on, and with
    0 wherever it may be off.
    """
    mostly = (bounds.high + bounds.low > 0) & (bounds.high > 0)
    always = bounds.low >= 0
    return [np.where(on[:, None], floor, 0.0) for on in (mostly, always)]


def _highest(net: ReluNet, around: Neighbourhood, radius: float, layers: list[UnitBounds], weight: Floats) -> Floats:
    """Upper bound of ``weight @ activations of the last of layers``, by intervals and by backward relaxation."""
    rising, falling = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
    on_low, on_high = np.maximum(layers[-1].low, 0.0), np.maximum(layers[-1].high, 0.0)
    best = rising @ on_high + falling @ on_low
    for mostly in (True, False):
        slopes, constant = weight, np.zeros(len(weight))
        for depth in range(len(layers) - 1, -1, -1):
            low, high = layers[depth].low, layers[depth].high
            chord = np.maximum(high, 0.0) / np.maximum(high - np.minimum(low, 0.0), 1e-300)
            tangent = ((high + low > 0) & (high > 0) if mostly else low >= 0).astype(np.float64)
            rising, falling = np.maximum(slopes, 0.0), np.minimum(slopes, 0.0)
            constant = constant - rising @ (chord * np.minimum(low, 0.0))
            slopes = rising * chord + falling * tangent
            constant = constant + slopes @ net.biases[depth]
            slopes = slopes @ net.weights[depth]
        value = constant + slopes @ around.origin + around.most(slopes, radius)
        best = np.minimum(best, value)
    return np.asarray(best)


def nearest_possible(net: ReluNet, around: Neighbourhood, logit: float, radius: float, steps: int = 12) -> float:
    """A distance from the factual that every point of the box with at least ``logit`` has, in about a millisecond
    per step.

    The largest radius found by bisection below ``radius`` (a distance from the factual at which such a point is
    known) within which the bounds exclude such points.
    """
    excluded, open_ = 0.0, max(radius - around.offset, 0.0)
    if _reachable(net, around, logit, excluded):
        return around.offset
    for _ in range(steps):
        middle = (excluded + open_) / 2
        if _reachable(net, around, logit, middle):
            open_ = middle
        else:
            excluded = middle
    return around.offset + excluded


def _reachable(net: ReluNet, around: Neighbourhood, logit: float, radius: float) -> bool:
    return bool(network_bounds(net, around, radius)[-1].high[0] >= logit)
