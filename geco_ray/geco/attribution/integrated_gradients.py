"""Integrated Gradients (Sundararajan et al. 2017; GECOBench, methods) with memory that does not grow with the steps."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, FloatArray, ModelOptions, Scores
from geco_ray.registry import Options, Profile

if TYPE_CHECKING:
    from geco_ray.geco.passes.paths import Path

FIRST_STEPS = 8


class IntegratedGradientsOptions(ModelOptions):
    """Attributes:
    n_steps: points of the Gauss-Legendre rule on the path from the baseline.
    tolerance: take 8, 16, 32, ... points, at most ``n_steps``, until the completeness gap is at most this share of the
        explained change; null takes ``n_steps``.
    """

    LIBRARY_DEFAULTS: ClassVar = {"n_steps": 50}

    n_steps: int = Field(200, ge=1)
    tolerance: float | None = Field(None, gt=0)


@ATTRIBUTIONS.register(
    "integrated_gradients",
    title="Integrated Gradients",
    options=IntegratedGradientsOptions,
    profile=Profile(order=9, colour="#7F2704", marker="*", aims=True),
)
def integrated_gradients(inputs: AttributionInputs, options: Options) -> Scores:
    """Signed sum over dimensions of ``(x - b) * integral of the gradient from b to x``, per token.

    The baseline b keeps the special tokens and puts ``[PAD]`` for every piece of a word. ``corrected`` integrates the
    logit over word embeddings (positions and types stay those of the sentence); ``paper`` integrates the softmax
    probability over the output of the embedding module. In both the baseline's ``[PAD]`` positions are attended like
    the words they replace, since the mask is the sentence's own.
    """
    from geco_ray.geco.passes.paths import integration_path

    assert isinstance(options, IntegratedGradientsOptions)
    values: list[FloatArray] = []
    changes, steps = np.zeros(len(inputs.rows)), np.zeros(len(inputs.rows), np.int64)
    for position in range(len(inputs.rows)):
        path = integration_path(inputs, position)
        changes[position] = path.change()
        found, steps[position] = _integrate(path, changes[position], options)
        values.append(found)
    gaps = np.array([value.sum() for value in values]) - changes
    chosen = steps if options.tolerance is not None else None
    return Scores(values, completeness_gap=gaps, explained_change=changes, steps=chosen)


def _integrate(path: Path, change: float, options: IntegratedGradientsOptions) -> tuple[FloatArray, int]:
    """The attribution and the number of points it took."""
    if options.tolerance is None:
        return path.attribute(*_rule(options.n_steps)), options.n_steps
    steps = min(FIRST_STEPS, options.n_steps)
    while True:
        found = path.attribute(*_rule(steps))
        if abs(found.sum() - change) <= options.tolerance * abs(change) or steps == options.n_steps:
            return found, steps
        steps = min(2 * steps, options.n_steps)


@lru_cache
def _rule(steps: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the Gauss-Legendre rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    return (nodes + 1) / 2, weights / 2
