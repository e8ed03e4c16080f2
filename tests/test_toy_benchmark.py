"""A third benchmark from a package of its own: planned, run in this process and on Ray, shown, by no existing file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARK = """\
from dataclasses import dataclass

from geco_ray.cells import Cell
from geco_ray.experiments.base import Result, ServedStage, computation, serve_stage
from geco_ray.plan.axes import Axes, Axis, Numbers
from geco_ray.plan.benchmark import Benchmark, Stage, declare

class WalkAxes(Axes):
    datasets: Axis[str]
    seeds: Numbers

@dataclass(frozen=True)
class WalkCell(Cell):
    STAGE = "walk"
    dataset: str
    seed: int

@dataclass(frozen=True)
class PlaceCell(Cell):
    STAGE = "place"
    walk: WalkCell

@dataclass(frozen=True)
class MeanCell(Cell):
    STAGE = "mean"
    dataset: str
    places: tuple[PlaceCell, ...]

def expand(axes, resolver):
    resolver.check_names("datasets", axes.datasets, "data set", names())
    for dataset in axes.datasets:
        places = tuple(PlaceCell(WalkCell(dataset, seed)) for seed in axes.seeds)
        yield from [*(place.walk for place in places), *places, MeanCell(dataset, places)]

def names(data_dir=None):
    return ["line", "plane"]

@computation("walk")
def walk(cells, ledger, context):
    import numpy as np
    import pyarrow as pa
    for cell in cells:
        steps = np.random.default_rng(cell.seed).normal(size=(9, 1 + names().index(cell.dataset)))
        yield cell, Result(pa.table({"position": list(steps.cumsum(0))}))

class Walk:
    def __init__(self, cell, ledger, context):
        self.table = ledger.table(ledger.require(cell.walk))

    def answer(self, cell):
        return Result(self.table.slice(8))

@computation("mean")
def mean(cells, ledger, context):
    import pyarrow as pa
    for cell in cells:
        ends = [ledger.table(ledger.require(place))["position"][0].as_py() for place in cell.places]
        yield cell, Result(pa.table({"first": [sum(end[0] for end in ends) / len(ends)]}))

serve_stage("place", ServedStage(key=lambda cell: cell.walk.id, load=Walk))
declare(Benchmark(
    name="walks", title="Random walks", axes=WalkAxes, expand=expand, work="random_walks",
    stages=(Stage("walk", "trials", small=True), Stage("place", "actors"), Stage("mean", "driver")),
    pack_key=lambda cell: cell.dataset if isinstance(cell, WalkCell) else cell.id,
    datasets="random_walks:names", reading="random_walks_topic:TOPIC",
))
"""
GRID = "walks:\n  datasets: [line, plane]\n  seeds: 3\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder on the import path with the package, its metadata as pip writes them, and a grid."""
    (tmp_path / "random_walks.py").write_text(BENCHMARK)
    info = tmp_path / "random_walks-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: random-walks\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[geco_ray.experiments]\nwalks = random_walks\n")
    (tmp_path / "walks.yaml").write_text(GRID)
    return tmp_path


def command(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"} | {"PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-m", "geco_ray", *words], cwd=site, env=env, capture_output=True, text=True, check=False
    )


def told(site: Path, *words: str) -> Any:
    done = command(site, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def tables(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((root / "cells").rglob("*.parquet"))}


def test_it_is_planned_and_listed_beside_the_others(site: Path) -> None:
    plan = told(site, "plan", "walks.yaml")
    assert plan["axes"] == {"walks": {"datasets": ["line", "plane"], "seeds": [0, 1, 2]}}
    rows = [(row["stage"], row["cells"], row["trials"], row["runs as"]) for row in plan["stages"]]
    assert rows == [("walk", 6, 2, "trials"), ("place", 6, 0, "holders"), ("mean", 2, 0, "driver")]
    assert told(site, "ls", "datasets")["walks datasets"] == ["line", "plane"]
    assert told(site, "plan", "demo", "walks.datasets=line", "walks.seeds=[4]", "only=walks")["left"] == 3


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("walks.seed=3", "unknown key 'walks.seed'. Did you mean 'seeds'?"),
        ("walks.datasets=[lime]", "walks.datasets: unknown data set 'lime'. Did you mean 'line'?"),
        ("walks.datasets=[line, line]", "walks.datasets lists 'line' twice. Keep one"),
        ("only=walk", "'geco', 'walks' or 'cfe'"),
        ("walks=null", "walks has no axes"),
    ],
)
def test_what_is_wrong_in_its_grid_is_refused_as_in_any(site: Path, override: str, said: str) -> None:
    done = command(site, "plan", "walks.yaml", override)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.replace("\n", " ").startswith(f"error: override {override!r}: ")
    assert said in done.stderr


def test_inline_and_on_ray_it_ends_in_the_same_bytes_and_status_says_so(site: Path) -> None:
    inline = told(site, "run", "walks.yaml", "--executor", "inline", "--root", "inline")
    ray = told(site, "run", "walks.yaml", "--cpus", "2", "--root", "ray", "--device", "cpu")
    assert inline["stages"] == ray["stages"]
    assert len(tables(site / "inline")) == 14
    assert tables(site / "inline") == tables(site / "ray")
    status = told(site, "status", "walks.yaml", "--root", "ray")
    assert (status["cells"], status["left"], status["failures"]) == (14, 0, {})
