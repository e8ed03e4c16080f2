"""InputXGradient: embedding times gradient, summed over dimensions (Shrikumar et al. 2016; GECOBench, methods)."""

from __future__ import annotations

from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, ModelOptions, Scores
from geco_ray.registry import Options, Profile


@ATTRIBUTIONS.register(
    "input_x_gradient",
    title="InputXGradient",
    options=ModelOptions,
    profile=Profile(order=6, colour="#C24E00", marker="v", aims=True),
)
def input_x_gradient(inputs: AttributionInputs, options: Options) -> Scores:
    """Signed sum over the embedding's dimensions of ``embedding * d scalar / d embedding``, per token."""
    from geco_ray.geco.passes.gradients import summarize_gradients

    return Scores(inputs.once(summarize_gradients).times_input)
