"""ROAR-LIME: descent to a point that stays favourable for every surrogate in a box around LIME's linear model."""

from __future__ import annotations

from geco_ray.cfe.methods.base import METHODS, GenerationTask, Prepared
from geco_ray.cfe.methods.roar_lime.options import RoarLimeOptions
from geco_ray.registry import Profile


@METHODS.register(
    "roar_lime",
    title="ROAR-LIME",
    options=RoarLimeOptions,
    profile=Profile(
        order=7,
        colour="#A8407F",
        marker="P",
        aims=True,
        assumes="bounded parameters of a local surrogate",
        certificate="none",
        scope=("bounded_parameter",),
    ),
)
def prepare(task: GenerationTask, options: RoarLimeOptions) -> Prepared:
    """Take the trade-off from the options or from the frozen tuning of the data set."""
    from geco_ray.cfe.methods.roar_lime.search import RoarLime
    from geco_ray.cfe.tuning import resolve_tuned

    values = resolve_tuned("roar_lime", options, task.protocol, task.dataset, task.seeding)
    return RoarLime(task, options, values["trade_off"])
