"""RBR: robust Bayesian recourse, a worst-case likelihood ratio around the decision boundary."""

from __future__ import annotations

from geco_ray.cfe.methods.base import METHODS, GenerationTask, Prepared
from geco_ray.cfe.methods.rbr.options import RbrOptions
from geco_ray.registry import Profile


@METHODS.register(
    "rbr",
    title="RBR",
    options=RbrOptions,
    profile=Profile(
        order=3, colour="#9A6A00", marker="^", aims=True, assumes="distributional ambiguity", certificate="none"
    ),
)
def prepare(task: GenerationTask, options: RbrOptions) -> Prepared:
    """Find the favourable training rows and the ball's radius once."""
    from geco_ray.cfe.methods.rbr.search import prepare_rbr

    return prepare_rbr(task, options)
