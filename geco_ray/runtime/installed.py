"""What is installed here that the nodes of a cluster must have alike."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Any

from geco_ray import __version__


def facts_here() -> dict[str, Any]:
    """What must be the same on all nodes: Python's minor version, Ray, geco_ray and the plug-ins of its registries."""
    points = importlib.metadata.entry_points()
    ours = [group for group in points.groups if group.startswith("geco_ray.")]
    names = sorted(f"{point.name} of {group}" for group in ours for point in points.select(group=group))
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "Ray": importlib.metadata.version("ray"),
        "geco_ray": __version__,
        "plug-ins": ", ".join(names),
    }
