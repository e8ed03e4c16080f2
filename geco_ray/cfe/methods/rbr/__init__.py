"""RBR: robust Bayesian recourse, a worst-case likelihood ratio around the decision boundary."""

from __future__ import annotations

from geco_ray.cfe.constraints.declared import honours
from geco_ray.cfe.methods.base import METHODS, GenerationTask, Prepared
from geco_ray.cfe.methods.rbr.options import RbrOptions


@METHODS.register("rbr", title="RBR", options=RbrOptions)
@honours()
def prepare(task: GenerationTask, options: RbrOptions) -> Prepared:
    """Find the favourable training rows and the ball's radius once."""
    from geco_ray.cfe.methods.rbr.search import prepare_rbr

    return prepare_rbr(task, options)
