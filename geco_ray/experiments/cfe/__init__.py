"""Robust counterfactuals as a grid: which method's counterfactuals survive a change of the model."""

from geco_ray.experiments.cfe.axes import CfeAxes
from geco_ray.experiments.cfe.expand import expand_axes, pack_key
from geco_ray.plan.benchmark import Benchmark, Stage, declare

declare(
    Benchmark(
        name="cfe",
        title="Robust counterfactuals",
        axes=CfeAxes,
        stages=(
            Stage("models", "trials", small=True),
            Stage("counterfactuals", "trials", small=True),
            Stage("validity", "actors", small=True),
        ),
        expand=expand_axes,
        pack_key=pack_key,
        components={
            "families": "geco_ray.cfe.changes.base:FAMILIES",
            "methods": "geco_ray.cfe.methods.base:METHODS",
        },
        datasets="geco_ray.cfe.data.datasets:dataset_names",
        check_inputs="geco_ray.experiments.cfe.work:check_inputs",
        find_missing="geco_ray.experiments.cfe.missing:find_missing",
        work="geco_ray.experiments.cfe.work",
        reading="analysis.cfe.topic:TOPIC",
        health="geco_ray.experiments.cfe.health:health",
    )
)
