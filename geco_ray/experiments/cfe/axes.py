"""The axes of robust counterfactuals in a grid."""

from __future__ import annotations

from typing import Literal

from geco_ray.plan.axes import Axes, Axis, Component, Numbers, Protocol, Seeds

Seeding = Literal["paper", "independent"]


class CfeAxes(Axes):
    """Datasets x base seeds x seeding x (families x variants, methods x protocol)."""

    datasets: Axis[str]
    base_seeds: Seeds
    families: Axis[str]
    variants: Numbers
    methods: Axis[Component]
    protocol: Axis[Protocol]
    seeding: Axis[Seeding]
