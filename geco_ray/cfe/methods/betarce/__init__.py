"""BetaRCE: growing spheres until an ensemble of retrained models agrees, with a beta lower bound."""

from __future__ import annotations

from geco_ray.cfe.methods.base import METHODS, GenerationTask, Prepared
from geco_ray.cfe.methods.betarce.options import BetarceOptions
from geco_ray.registry import Profile


@METHODS.register(
    "betarce",
    title="BetaRCE",
    options=BetarceOptions,
    profile=Profile(
        order=6,
        colour="#1F78A8",
        marker="v",
        aims=True,
        assumes="sampled models",
        certificate="probabilistic, for models drawn like its helpers",
        scope=("bootstrap",),
    ),
)
def prepare(task: GenerationTask, options: BetarceOptions) -> Prepared:
    """Train the helper models; they share their way of sampling with the bootstrap family that is evaluated."""
    from geco_ray.cfe.methods.betarce.search import Betarce, train_helpers

    return Betarce(task, options, train_helpers(task, options.members))
