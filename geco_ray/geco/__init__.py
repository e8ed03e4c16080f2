"""GECOBench as a plain library: no Ray, no ledger, no command line.

What a notebook needs stands here; everything else in its own module.
"""

from typing import TYPE_CHECKING

from geco_ray import lazy_face

if TYPE_CHECKING:
    from geco_ray.geco.attribution.base import ATTRIBUTIONS
    from geco_ray.geco.data.dataset import load_task
    from geco_ray.geco.encoders import load_tokenizer, resolve_encoder
    from geco_ray.geco.explain import Explainer, score
    from geco_ray.geco.metrics import METRICS
    from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
    from geco_ray.geco.protocol import resolve_protocol
    from geco_ray.geco.tokens import tokenize_task
    from geco_ray.geco.training import load_trained

_FACE = {
    "ATTRIBUTIONS": "geco_ray.geco.attribution.base",
    "Explainer": "geco_ray.geco.explain",
    "METRICS": "geco_ray.geco.metrics",
    "PARADIGMS": "geco_ray.geco.paradigms.base",
    "TrainingSetup": "geco_ray.geco.paradigms.base",
    "load_task": "geco_ray.geco.data.dataset",
    "load_tokenizer": "geco_ray.geco.encoders",
    "load_trained": "geco_ray.geco.training",
    "resolve_encoder": "geco_ray.geco.encoders",
    "resolve_protocol": "geco_ray.geco.protocol",
    "score": "geco_ray.geco.explain",
    "tokenize_task": "geco_ray.geco.tokens",
}
__all__ = [
    "ATTRIBUTIONS",
    "METRICS",
    "PARADIGMS",
    "Explainer",
    "TrainingSetup",
    "load_task",
    "load_tokenizer",
    "load_trained",
    "resolve_encoder",
    "resolve_protocol",
    "score",
    "tokenize_task",
]

__getattr__ = lazy_face(__name__, _FACE)


def __dir__() -> list[str]:
    return [*globals(), *_FACE]
