"""From a grid file to the cells that are left: reading, typing, expanding, packing. Neither torch nor Ray.

``from geco_ray.plan import RunSettings, load_grid, make_plan`` and :func:`geco_ray.plan.expand.expand` are what a
program or notebook needs of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geco_ray.plan.benchmark import Benchmark, Stage, declare
    from geco_ray.plan.config import Grid, RunSettings, load_grid
    from geco_ray.plan.remaining import Plan, make_plan

__all__ = ["Benchmark", "Grid", "Plan", "RunSettings", "Stage", "declare", "load_grid", "make_plan"]
_HOMES = {
    "Benchmark": "benchmark", "Stage": "benchmark", "declare": "benchmark",
    "Grid": "config", "RunSettings": "config", "load_grid": "config",
    "Plan": "remaining", "make_plan": "remaining",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a name of the face when it is first asked for, so that a module of this folder can be imported alone."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
