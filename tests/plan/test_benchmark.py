"""All that the frame knows of benchmarks is what they declare, and two of them must not get in each other's way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from geco_ray.cells import Cell
from geco_ray.errors import UserError
from geco_ray.plan.axes import Axes
from geco_ray.plan.benchmark import (
    BENCHMARKS,
    Benchmark,
    Stage,
    benchmarks,
    declare,
    load_named,
    owner_of,
    stage_owners,
)
from geco_ray.plan.config import load_grid
from geco_ray.plan.expand import expand
from geco_ray.plan.remaining import make_plan

FRAME = ("plan", "ledger", "runtime", "cli")
OF_THE_LIBRARIES = {
    "audit.py",
    "data_build.py",
    "data.py",
    "data_tables.py",
    "tune.py",
}  # `geco-ray data` and `geco-ray tune` work on the libraries, without a grid


class NoAxes(Axes):
    pass


class UndeclaredCell(Cell):
    STAGE = "undeclared"


def expand_nothing(axes: Any, resolver: Any) -> Iterator[Cell]:
    yield from ()


TOY = Benchmark(
    "toy",
    "Toy",
    NoAxes,
    (Stage("toy", "driver"),),
    expand_nothing,
    datasets="toy:names",
    work="toy",
    reading="toy:TOPIC",
)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry whose additions are gone after the test."""
    BENCHMARKS.names()
    monkeypatch.setattr(BENCHMARKS, "_entries", dict(BENCHMARKS._entries))


def test_benchmarks_run_in_the_order_of_their_titles(known: None) -> None:
    declare(TOY)
    titles = [benchmark.title for benchmark in benchmarks()]
    assert titles == sorted(titles)
    assert "Toy" in titles


def test_what_a_benchmark_names_is_there() -> None:
    for benchmark in benchmarks():
        assert load_named(benchmark.datasets)(None)
        assert callable(load_named(benchmark.check_inputs or "builtins:print"))
        assert all(load_named(registry).names() for registry in benchmark.components.values())
        assert set(benchmark.components) <= set(benchmark.axes.model_fields)


def test_a_stage_of_two_benchmarks_is_refused(known: None) -> None:
    declare(replace(TOY, stages=(Stage("train", "trials"),)))
    with pytest.raises(UserError, match="'train' belongs to two benchmarks, geco and toy"):
        stage_owners()


def test_a_name_of_two_benchmarks_is_refused(known: None) -> None:
    with pytest.raises(ValueError, match="'GECO' is registered by geco_ray"):
        declare(replace(TOY, name="GECO"))


def test_a_cell_of_a_stage_that_nobody_declared_is_refused(known: None, tmp_path: Path) -> None:
    declare(replace(TOY, expand=lambda axes, resolver: iter([UndeclaredCell()])))
    (tmp_path / "toy.yaml").write_text("toy: {}\n")
    with pytest.raises(UserError, match="unknown stage 'undeclared'"):
        expand(*load_grid(str(tmp_path / "toy.yaml")))
    with pytest.raises(UserError, match=r"unknown stage 'score_'\. Did you mean 'score'"):
        owner_of("score_")


def test_the_size_of_a_pack_has_one_default(known: None, tmp_path: Path) -> None:
    from geco_ray.ledger import Ledger
    from geco_ray.plan.benchmark import DEFAULT_PACK
    from geco_ray.plan.config import RunSettings

    cells = expand(*load_grid("demo", ["only=cfe"]))
    ledger = Ledger(tmp_path)
    assert make_plan(cells, ledger) == make_plan(cells, ledger, DEFAULT_PACK)
    assert RunSettings().pack == DEFAULT_PACK


@pytest.mark.parametrize("room", FRAME)
def test_the_frame_names_no_benchmark_and_no_stage(room: str) -> None:
    import ast

    folder = Path(sys.modules["geco_ray.plan"].__path__[0]).parent
    names = {benchmark.name for benchmark in benchmarks()} | set(stage_owners())
    for path in [folder / "cells.py", *sorted((folder / room).glob("*.py"))]:
        if path.name in OF_THE_LIBRARIES:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        imported = {str(getattr(node, "module", "")) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not named & names, path
        assert not {module for module in imported if set(module.split(".")) & {"geco", "cfe"}}, path


def test_declarations_import_nothing_heavy() -> None:
    code = (
        "import sys; from geco_ray.plan.benchmark import benchmarks; benchmarks()\n"
        "print(sorted({'torch', 'ray', 'numpy', 'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_face_gives_all_its_names_and_they_are_those_of_their_modules() -> None:
    import geco_ray.plan
    from geco_ray.plan.config import RunSettings

    assert all(getattr(geco_ray.plan, name).__name__ == name for name in geco_ray.plan.__all__)
    assert geco_ray.plan.RunSettings is RunSettings
    with pytest.raises(ImportError, match="no_such"):
        from geco_ray.plan import no_such  # type: ignore[attr-defined]  # noqa: F401
