"""Gradient SHAP (Lundberg and Lee 2017; GECOBench, methods): gradients at random points between baseline and input."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, FloatArray, ModelOptions, Scores
from geco_ray.registry import Options, Profile


class GradientShapOptions(ModelOptions):
    """Attributes:
    n_samples: random points; null is the protocol's, 25 (``corrected``) or 5 (``paper``).
    noise: standard deviation of the normal noise that is added to the embedding for each point.
    """

    LIBRARY_DEFAULTS: ClassVar = {"n_samples": 5, "noise": 0.0}

    n_samples: int | None = Field(None, ge=1)
    noise: float = Field(0.0, ge=0)


@ATTRIBUTIONS.register(
    "gradient_shap",
    title="Gradient SHAP",
    options=GradientShapOptions,
    profile=Profile(order=8, colour="#6A3D9A", marker="X", aims=True),
)
def gradient_shap(inputs: AttributionInputs, options: Options) -> Scores:
    """Mean over points ``b + alpha (x - b)``, alpha from U(0, 1), of the sum of ``(x - b) * gradient``, per token.

    x is the embedding at which the gradient methods attribute, plus the noise; b is the baseline's. Noise and alphas
    come from two streams, so that neither depends on how many points a pass holds.
    """
    from geco_ray.geco.passes.paths import gradient_path

    assert isinstance(options, GradientShapOptions)
    samples = options.n_samples or inputs.protocol.gradient_shap_samples
    values: list[FloatArray] = []
    changes = np.zeros(len(inputs.rows))
    for position, row in enumerate(inputs.rows):
        path = gradient_path(inputs, position)
        alphas, normal = inputs.random("gradient_shap", row).spawn(2)
        shape = tuple(path.start.shape)

        def noise(count: int, normal: np.random.Generator = normal, shape: tuple[int, ...] = shape) -> FloatArray:
            return options.noise * normal.standard_normal((count, *shape))

        weights = np.full(samples, 1 / samples)
        values.append(path.attribute(alphas.random(samples), weights, noise if options.noise else None))
        changes[position] = path.change()
    gaps = np.array([value.sum() for value in values]) - changes
    return Scores(values, completeness_gap=gaps, explained_change=changes)
