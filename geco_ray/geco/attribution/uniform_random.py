"""Uniform random: the null model, U(0, 1) per token (GECOBench, methods)."""

from __future__ import annotations

from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, Scores
from geco_ray.registry import Options, Profile


@ATTRIBUTIONS.register(
    "uniform_random", title="Uniform random", profile=Profile(order=1, colour="#5F5F5F", marker="x", aims=False)
)
def uniform_random(inputs: AttributionInputs, options: Options) -> Scores:
    """One draw per token, special tokens included, from the row's own stream; a word sums the draws of its pieces."""
    return Scores(
        [
            inputs.random("uniform_random", row).random(len(sentence))
            for row, sentence in zip(inputs.rows, inputs.sentences, strict=True)
        ]
    )
