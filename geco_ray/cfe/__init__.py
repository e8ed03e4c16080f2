"""The robust-counterfactual benchmark as a plain library: no Ray, no ledger, no command line.

What a notebook needs stands here; everything else in its own module.
"""

from typing import TYPE_CHECKING

from geco_ray import lazy_face

if TYPE_CHECKING:
    from geco_ray.cfe.base_model import train_base
    from geco_ray.cfe.changes.base import FAMILIES, iter_variants
    from geco_ray.cfe.data.datasets import load_dataset
    from geco_ray.cfe.factuals import select_factuals
    from geco_ray.cfe.generation import generate
    from geco_ray.cfe.methods.base import METHODS, GenerationTask
    from geco_ray.cfe.metrics import METRICS, count_pairs, count_requests
    from geco_ray.cfe.model_stack import StackedModels
    from geco_ray.cfe.seeding import BaseKey
    from geco_ray.cfe.training import Pool
    from geco_ray.cfe.validity import validity_table

_FACE = {
    "BaseKey": "geco_ray.cfe.seeding",
    "FAMILIES": "geco_ray.cfe.changes.base",
    "GenerationTask": "geco_ray.cfe.methods.base",
    "METHODS": "geco_ray.cfe.methods.base",
    "METRICS": "geco_ray.cfe.metrics",
    "Pool": "geco_ray.cfe.training",
    "StackedModels": "geco_ray.cfe.model_stack",
    "count_pairs": "geco_ray.cfe.metrics",
    "count_requests": "geco_ray.cfe.metrics",
    "generate": "geco_ray.cfe.generation",
    "iter_variants": "geco_ray.cfe.changes.base",
    "load_dataset": "geco_ray.cfe.data.datasets",
    "select_factuals": "geco_ray.cfe.factuals",
    "train_base": "geco_ray.cfe.base_model",
    "validity_table": "geco_ray.cfe.validity",
}
__all__ = [
    "FAMILIES",
    "METHODS",
    "METRICS",
    "BaseKey",
    "GenerationTask",
    "Pool",
    "StackedModels",
    "count_pairs",
    "count_requests",
    "generate",
    "iter_variants",
    "load_dataset",
    "select_factuals",
    "train_base",
    "validity_table",
]

__getattr__ = lazy_face(__name__, _FACE)


def __dir__() -> list[str]:
    return [*globals(), *_FACE]
