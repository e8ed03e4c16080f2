"""BetaRCE: growing spheres until an ensemble of retrained models agrees, with a beta lower bound."""

from __future__ import annotations

from geco_ray.cfe.constraints.declared import honours
from geco_ray.cfe.methods.base import METHODS, GenerationTask, Prepared
from geco_ray.cfe.methods.betarce.options import BetarceOptions


@METHODS.register("betarce", title="BetaRCE", options=BetarceOptions)
@honours()
def prepare(task: GenerationTask, options: BetarceOptions) -> Prepared:
    """Train the helper models; they share their way of sampling with the bootstrap family that is evaluated."""
    from geco_ray.cfe.methods.betarce.search import Betarce, train_helpers

    return Betarce(task, options, train_helpers(task, options.members))
