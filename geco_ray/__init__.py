"""geco_ray: GECOBench and robust counterfactuals as one distributed experiment grid on Ray.

Importing this package is cheap: neither torch nor Ray is loaded until something is computed.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def lazy_face(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package that gives ``names`` (name to module) and imports each when it is asked for."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(names[name]), name)

    return get


_FACE = {"score_attributions": "geco_ray.geco.own_scores"}
__all__ = [*_FACE]
__getattr__ = lazy_face(__name__, _FACE)
