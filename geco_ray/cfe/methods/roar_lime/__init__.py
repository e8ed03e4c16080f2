"""ROAR-LIME: descent to a point that stays favourable for every surrogate in a box around LIME's linear model."""

from __future__ import annotations

from geco_ray.cfe.constraints.declared import honours
from geco_ray.cfe.methods.base import METHODS, GenerationTask, Prepared
from geco_ray.cfe.methods.roar_lime.options import RoarLimeOptions


@METHODS.register("roar_lime", title="ROAR-LIME", options=RoarLimeOptions)
@honours()
def prepare(task: GenerationTask, options: RoarLimeOptions) -> Prepared:
    """Take the trade-off from the options or from the frozen tuning of the data set."""
    from geco_ray.cfe.methods.roar_lime.search import RoarLime
    from geco_ray.cfe.tuning import resolve_tuned

    return RoarLime(task, options, resolve_tuned("roar_lime", options, task.protocol, task.dataset)["trade_off"])
