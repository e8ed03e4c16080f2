"""GECOBench as a grid: which classifier looks at the words that decide, by which method of explaining."""

from geco_ray.experiments.geco.axes import GecoAxes
from geco_ray.experiments.geco.expand import expand_axes, pack_key, trains_small
from geco_ray.plan.benchmark import Benchmark, Stage, declare

declare(
    Benchmark(
        name="geco",
        title="GECOBench",
        axes=GecoAxes,
        stages=(
            Stage("train", "trials", small_cell=trains_small),
            Stage("explain", "actors"),
            Stage("score", "driver"),
        ),
        expand=expand_axes,
        pack_key=pack_key,
        components={
            "encoders": "geco_ray.geco.named_encoders.base:ENCODERS",
            "paradigms": "geco_ray.geco.paradigms.base:PARADIGMS",
            "methods": "geco_ray.geco.attribution.base:ATTRIBUTIONS",
        },
        datasets="geco_ray.geco.data.dataset:task_names",
        check_inputs="geco_ray.experiments.geco.work:check_inputs",
        find_missing="geco_ray.experiments.geco.missing:find_missing",
        units="geco_ray.experiments.geco.costs:units",
        work="geco_ray.experiments.geco.work",
        reading="analysis.geco.topic:TOPIC",
        health="geco_ray.experiments.geco.health:health",
    )
)
