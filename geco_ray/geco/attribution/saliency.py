"""Saliency: the L1 norm of the gradient at a token's embedding (Simonyan et al. 2014; GECOBench, methods)."""

from __future__ import annotations

from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, ModelOptions, Scores
from geco_ray.registry import Options, Profile


@ATTRIBUTIONS.register(
    "saliency",
    title="Saliency",
    options=ModelOptions,
    profile=Profile(order=2, colour="#0072B2", marker="o", aims=True),
)
def saliency(inputs: AttributionInputs, options: Options) -> Scores:
    """Sum over the embedding's dimensions of ``|d scalar / d embedding|``, per token."""
    from geco_ray.geco.passes.gradients import summarize_gradients

    return Scores(inputs.once(summarize_gradients).absolute)
