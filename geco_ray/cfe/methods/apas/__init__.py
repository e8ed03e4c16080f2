"""APΔS: the closest point with a margin, the margin raised until every network sampled near the base model agrees."""

from __future__ import annotations

from geco_ray.cfe.methods.apas.options import ApasOptions
from geco_ray.cfe.methods.base import METHODS, GenerationTask, Prepared
from geco_ray.registry import Profile


@METHODS.register(
    "apas",
    title="APΔS",
    options=ApasOptions,
    profile=Profile(
        order=2,
        colour="#0072B2",
        marker="s",
        aims=True,
        assumes="bounded parameters",
        certificate="probabilistic, for all models within a parameter radius",
        scope=("bounded_parameter",),
    ),
)
def prepare(task: GenerationTask, options: ApasOptions) -> Prepared:
    """Calibrate the radius and draw the search sample once (Marzari et al., as set up in "Robust to Which Model
    Change?").
    """
    from geco_ray.cfe.methods.apas.search import Apas

    return Apas(task, options)
