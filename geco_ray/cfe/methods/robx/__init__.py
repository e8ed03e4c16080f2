"""RobX: the stability of the favourable training rows sets the threshold; its median (balanced) or 90 % quantile."""

from __future__ import annotations

from geco_ray.cfe.methods.base import METHODS, GenerationTask, Prepared
from geco_ray.cfe.methods.robx.options import RobxOptions, RobxRobustOptions
from geco_ray.registry import Profile


@METHODS.register(
    "robx_robust",
    title="RobX robust-first",
    options=RobxRobustOptions,
    profile=Profile(order=9, colour="#7F2704", marker="*", aims=True, assumes="local stability", certificate="none"),
)
@METHODS.register(
    "robx_balanced",
    title="RobX balanced",
    options=RobxOptions,
    profile=Profile(order=8, colour="#C24E00", marker="X", aims=True, assumes="local stability", certificate="none"),
)
def prepare(task: GenerationTask, options: RobxOptions) -> Prepared:
    """Calibrate the threshold on the base model's favourable training rows."""
    from geco_ray.cfe.methods.robx.search import prepare_robx

    return prepare_robx(task, options)
