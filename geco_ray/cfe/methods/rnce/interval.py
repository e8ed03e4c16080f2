"""The worst logit over all networks near a given one: bounds for many rows at once.

Every weight may move by ``delta`` and every bias by ``beta``, independently. A row is robust when the smallest
logit over that box of networks is above 0 (Jiang et al., RNCE, as set up in "Robust to Which Model Change?").
Two facts make the box tractable. The first layer's pre-activation moves by exactly ``delta |x|_1 + beta``.
Later layers see activations ``a >= 0``, so the pre-activation ranges from ``(W - delta) a + b - beta`` to
``(W + delta) a + b + beta``, both affine in ``a``. What is left is a minimum over a box of first-layer
activations, and for each later unit a free choice between its two affine bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geco_ray.cfe.milp.network import Bools, Floats, ReluNet

_JUMPS = 6


@dataclass(frozen=True, eq=False)
class Range:
    """Lowest and highest value of one quantity per row and unit, both (n, width)."""

    low: Floats
    high: Floats

    def relu(self) -> Range:
        """The range after a ReLU."""
        return Range(np.maximum(self.low, 0.0), np.maximum(self.high, 0.0))


@dataclass(frozen=True, eq=False)
class LayerRange:
    """Ranges of one later layer: of its lowest and of its highest pre-activation over the box of inputs."""

    lowest: Range
    highest: Range


@dataclass(frozen=True, eq=False)
class NetworkBox:
    """All networks whose weights lie within ``delta`` and biases within ``beta`` of those of ``net``."""

    net: ReluNet
    delta: float
    beta: float

    def first_activations(self, x: Floats) -> Range:
        """Range of the first layer's activations at each row of ``x`` (n, d)."""
        z = x @ self.net.weights[0].T + self.net.biases[0]
        slack = (self.delta * np.abs(x).sum(axis=1) + self.beta)[:, None]
        return Range(z - slack, z + slack).relu()

    def lowest_map(self, layer: int) -> tuple[Floats, Floats]:
        """Matrix and offset of the lowest pre-activation of affine layer ``layer`` >= 1, for inputs >= 0."""
        return self.net.weights[layer] - self.delta, self.net.biases[layer] - self.beta

    def highest_map(self, layer: int) -> tuple[Floats, Floats]:
        """Matrix and offset of the highest pre-activation of affine layer ``layer`` >= 1, for inputs >= 0."""
        return self.net.weights[layer] + self.delta, self.net.biases[layer] + self.beta

    def layer_range(self, layer: int, inputs: Range) -> LayerRange:
        """Interval arithmetic through affine layer ``layer``."""
        return LayerRange(
            _affine_range(*self.lowest_map(layer), inputs), _affine_range(*self.highest_map(layer), inputs)
        )

    def ranges(self, first: Range) -> list[LayerRange]:
        """Ranges of the hidden layers after the first, by interval arithmetic."""
        found, inputs = [], first
        for layer in range(1, self.net.hidden_layers):
            found.append(self.layer_range(layer, inputs))
            inputs = Range(found[-1].lowest.low, found[-1].highest.high).relu()
        return found

    def output_map(self) -> tuple[Floats, float]:
        """Coefficients (width,) and offset of the lowest logit in the last layer's activations."""
        weight, bias = self.lowest_map(self.net.hidden_layers)
        return weight[0], float(bias[0])


def _affine_range(matrix: Floats, offset: Floats, inputs: Range) -> Range:
    positive, negative = np.maximum(matrix, 0.0).T, np.minimum(matrix, 0.0).T
    low = inputs.low @ positive + inputs.high @ negative + offset
    high = inputs.high @ positive + inputs.low @ negative + offset
    return Range(low, high)


def lower_bound(box: NetworkBox, x: Floats) -> Floats:
    """A value below the smallest logit over ``box`` at each row of ``x`` (n, d), float64 (n,).

    The better of interval arithmetic and one backward linear relaxation.
    """
    first = box.first_activations(x)
    ranges = box.ranges(first)
    last = Range(ranges[-1].lowest.low, ranges[-1].highest.high).relu() if ranges else first
    coefficients, offset = box.output_map()
    by_intervals = _affine_range(coefficients[None], np.array([offset]), last).low[:, 0]
    relaxed, constant = _relax(box, first, ranges)[-1]
    by_relaxation = _least(relaxed, first) + constant
    return np.maximum(by_intervals, by_relaxation)


def _relax(box: NetworkBox, first: Range, ranges: list[LayerRange]) -> list[tuple[Floats, Floats]]:
    """Backward pass: (coefficients (n, width), constant (n,)) in the activations of each layer, last first.

    Each is a linear function below the lowest logit. A unit that counts positively is replaced by 0 or by
    its lowest pre-activation, one that counts negatively by the chord above its highest.
    """
    rows = len(first.low)
    weight, offset = box.output_map()
    coefficients, constant = np.tile(weight, (rows, 1)), np.full(rows, offset)
    found = [(coefficients, constant)]
    for layer in range(box.net.hidden_layers - 1, 0, -1):
        lowest, highest = ranges[layer - 1].lowest, ranges[layer - 1].highest
        below = np.maximum(coefficients, 0.0) * (lowest.high + lowest.low > 0)
        slope = np.clip(highest.high, 0.0, None) / np.maximum(highest.high - np.minimum(highest.low, 0.0), 1e-300)
        above = np.minimum(coefficients, 0.0) * slope
        (low_w, low_b), (high_w, high_b) = box.lowest_map(layer), box.highest_map(layer)
        chord = -(above * np.minimum(highest.low, 0.0)).sum(axis=1)
        constant = constant + below @ low_b + above @ high_b + chord
        coefficients = below @ low_w + above @ high_w
        found.append((coefficients, constant))
    return found


def _least(coefficients: Floats, inputs: Range) -> Floats:
    least: Floats = np.einsum("nw,nw->n", np.where(coefficients >= 0, inputs.low, inputs.high), coefficients)
    return least


def upper_bound(box: NetworkBox, x: Floats) -> Floats:
    """A value that some network of ``box`` reaches or undercuts at each row of ``x`` (n, d), float64 (n,).

    The logit of ``net`` itself, and that of corners of the box: the one that the linear relaxation points to and
    up to six jumps against the gradient from it and from the centre.
    """
    first = box.first_activations(x)
    relaxed = _relax(box, first, box.ranges(first))
    choices = [coefficients < 0 for coefficients, _ in relaxed][::-1]
    best = box.net.logit(x)
    starts = (np.where(choices[0], first.high, first.low), (first.low + first.high) / 2)
    for start in starts:
        a, chosen = start, choices
        for _ in range(_JUMPS + 1):
            value, gradients = _descend(box, a, chosen)
            best = np.minimum(best, value)
            chosen = [gradient < 0 for gradient in gradients]
            a = np.where(chosen[0], first.high, first.low)
    return best


def _descend(box: NetworkBox, a: Floats, choices: list[Bools]) -> tuple[Floats, list[Floats]]:
    """The logit (n,) when each later unit takes its highest (``choices``) or lowest value, and its gradients.

    Gradients are by the activations of each hidden layer, first layer first.
    """
    active: list[tuple[Bools, Bools]] = []
    for layer in range(1, box.net.hidden_layers):
        (low_w, low_b), (high_w, high_b) = box.lowest_map(layer), box.highest_map(layer)
        high = choices[layer]
        z = np.where(high, a @ high_w.T + high_b, a @ low_w.T + low_b)
        a = np.maximum(z, 0.0)
        active.append(((z > 0) & high, (z > 0) & ~high))
    weight, offset = box.output_map()
    gradients = [np.tile(weight, (len(a), 1))]
    for layer in range(box.net.hidden_layers - 1, 0, -1):
        up, down = active[layer - 1]
        high_part = (gradients[0] * up) @ box.highest_map(layer)[0]
        gradients.insert(0, high_part + (gradients[0] * down) @ box.lowest_map(layer)[0])
    return a @ weight + offset, gradients
