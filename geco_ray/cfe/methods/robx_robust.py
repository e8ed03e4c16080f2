"""RobX, robust first: the threshold is the 90 % quantile of the favourable training rows' stability."""

from __future__ import annotations

from pydantic import Field

from geco_ray.cfe.methods.base import METHODS, GenerationTask, Prepared
from geco_ray.cfe.methods.robx_balanced import RobxOptions


class RobxRobustOptions(RobxOptions):
    """Those of RobX balanced, but for the quantile."""

    quantile: float = Field(0.9, ge=0, le=1)


@METHODS.register("robx_robust", title="RobX robust-first", options=RobxRobustOptions)
def prepare(task: GenerationTask, options: RobxRobustOptions) -> Prepared:
    """Calibrate the threshold on the base model's favourable training rows."""
    from geco_ray.cfe.robx import prepare_robx

    return prepare_robx(task, options)
