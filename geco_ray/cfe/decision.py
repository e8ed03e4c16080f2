"""The one evaluator that decides: who is a factual, what is a counterfactual, what survives a change.

A logit is summed term by term in a fixed order: the bias, then weight times input for the first unit, the second, and
so on, each product and each sum rounded to float32 on its own. NumPy does that elementwise over rows and networks, so a
row has the same bits alone and in any company, with any number of threads and on any processor; a matrix product, which
takes its sums in another order for another shape, has not. Searches may use faster passes of their own: they only
propose.

A row is favourable if its logit is at least 0. :func:`probability` keeps to that: it is at least 0.5 in float32 exactly
where the logit is at least 0, also where rounding would say otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]

THRESHOLD = 0.5
"""Probability from which a row is favourable."""

_AT_ONCE = 1 << 16  # floats of a layer that are worked on together: what a core's cache holds
_TILE = 256  # rows that are worth an instruction's overhead; results do not depend on either number


def logits(weights: Sequence[Floats], biases: Sequence[Floats], x: NDArray[np.floating]) -> Floats:
    """Logits of several networks of one shape, float32 (models, n).

    Args:
        weights: of each layer in forward order, float32 (models, out, in); the last layer has one unit.
        biases: of each layer, float32 (models, out).
        x: rows (n, d), cast to float32.

    Raises:
        ValueError: ``x`` has another number of features than the first layer.
    """
    with np.errstate(over="ignore"):
        rows = np.asarray(x, dtype=np.float32)
    models, _, features = weights[0].shape
    if rows.ndim != 2 or rows.shape[1] != features:
        raise ValueError(f"expected rows of {features} features, got shape {rows.shape}")
    width = max(weight.shape[1] for weight in weights)
    together = min(models, max(1, _AT_ONCE // (width * _TILE)))
    tile = max(_TILE, _AT_ONCE // (width * together))
    out = np.empty((models, len(rows)), dtype=np.float32)
    for low in range(0, len(rows), tile):
        columns = np.ascontiguousarray(rows[low : low + tile].T)
        for first in range(0, models, together):
            some = slice(first, first + together)
            layers = [(w[some], b[some]) for w, b in zip(weights, biases, strict=True)]
            out[some, low : low + tile] = _forward(layers, columns)
    return out


def _forward(layers: Sequence[tuple[Floats, Floats]], columns: Floats) -> Floats:
    """Logits (models, rows) of ``columns`` (d, rows)."""
    hidden = columns[None]
    with np.errstate(over="ignore", invalid="ignore"):  # a huge row has an infinite logit, or none: then it is adverse
        for number, (weight, bias) in enumerate(layers):
            if number:
                np.maximum(hidden, np.float32(0), out=hidden)
            total = np.repeat(bias[:, :, None], hidden.shape[2], axis=2)
            term = np.empty_like(total)
            for unit in range(weight.shape[2]):
                np.multiply(weight[:, :, unit, None], hidden[:, None, unit, :], out=term)
                np.add(total, term, out=total)
            hidden = total
    return np.asarray(hidden[:, 0])


def probability(logit: Floats) -> Floats:
    """The logistic function of float32 logits, rounded to float32; at least :data:`THRESHOLD` where the logit is >= 0.

    Computed in float64, so that the last bit does not hang on whose exponential function it is.
    """
    wide = np.asarray(logit, dtype=np.float64)
    small = np.exp(-np.abs(wide))
    rounded = (np.where(wide >= 0, 1.0, small) / (1 + small)).astype(np.float32)
    below = np.nextafter(np.float32(THRESHOLD), np.float32(0))
    return np.asarray(np.where(wide < 0, np.minimum(rounded, below), rounded))


def favourable(probability: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Whether each probability is favourable: at least :data:`THRESHOLD`."""
    return np.asarray(probability >= THRESHOLD)
