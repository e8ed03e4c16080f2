"""The axes of GECOBench in a grid."""

from __future__ import annotations

from geco_ray.plan.axes import Axes, Axis, Component, Count, Numbers, Protocol


class GecoAxes(Axes):
    """Datasets x encoders x paradigms x seeds x protocol, each explained by every method."""

    datasets: Axis[str]
    encoders: Axis[str]
    paradigms: Axis[Component]
    seeds: Numbers
    methods: Axis[Component]
    protocol: Axis[Protocol]
    sentences: Count | None = None
