"""What the command line shows that is not a result: plans, names, the state of the installation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from geco_ray.errors import UserError
from geco_ray.plan.benchmark import benchmarks, load_named
from geco_ray.plan.gridfile import find_grid, grid_names, read_grid
from geco_ray.plan.remaining import Plan
from geco_ray.registry import Registry

if TYPE_CHECKING:
    from geco_ray.cli.health.doctor import Health


def axes_table(name: str, axes: dict[str, dict[str, Any]]) -> Table:
    """The axes of a grid, one row each."""
    table = Table(title=f"grid {name}", title_justify="left", show_edge=False)
    table.add_column("axis", no_wrap=True)
    table.add_column("values", overflow="fold")
    for benchmark, values in axes.items():
        for key, value in values.items():
            table.add_row(f"{benchmark}.{key}", _words(value))
    return table


def _words(value: Any) -> str:
    if isinstance(value, dict):
        options = ", ".join(f"{key} {item}" for key, item in value["options"].items())
        return f"{value['name']} ({options})" if options else str(value["name"])
    if isinstance(value, list):
        numbers = bool(value) and all(isinstance(item, int) for item in value)
        if numbers and len(value) > 5 and value == list(range(value[0], value[0] + len(value))):
            return f"{value[0]} to {value[-1]}"
        return ", ".join(_words(item) for item in value)
    return "all" if value is None else str(value)


def plan_table(rows: list[dict[str, Any]], *, always_why: bool = False) -> Table:
    """Cells, what runs them, done and left of each stage; why, where it is more than that they are not started."""
    table = Table(show_edge=False, pad_edge=False)
    for key in ("stage", "cells", "of which", "runs as", "done", "left", "why"):
        table.add_column(key, justify="right" if key in ("cells", "done", "left") else "left", no_wrap=key == "stage")
    for row in rows:
        runs_as = f"{row['trials']:,} trials" if row["trials"] else row["runs as"]
        why = row["why"].removeprefix(f"{row['left']:,} ")  # one reason for all of them needs no second number
        why = "" if why == "not started" and not always_why else why
        counts = [f"{row[key]:,}" for key in ("cells", "done", "left")]
        table.add_row(row["stage"], counts[0], row["of which"], runs_as, *counts[1:], why)
    return table


def known_names(kind: str | None, data_dir: Path | None) -> dict[str, list[str]]:
    """Every name a grid may use, by kind."""
    found: dict[str, Callable[[], Iterable[str]]] = {"grids": grid_names}
    for benchmark in benchmarks():
        found[f"{benchmark.name} datasets"] = partial(_dataset_names, benchmark.datasets, data_dir)
        for key, registry in benchmark.components.items():
            found[f"{benchmark.name} {key}"] = partial(_component_names, registry)
    return {name: list(names()) for name, names in found.items() if kind in (None, name.rpartition(" ")[2])}


def _dataset_names(reference: str, data_dir: Path | None) -> list[str]:
    names: list[str] = load_named(reference)(data_dir)
    return names


def _component_names(reference: str) -> list[str]:
    registry: Registry[Any] = load_named(reference)
    return registry.names()


def grid_descriptions() -> dict[str, str]:
    """What each grid that can be given by name says of itself; of one that cannot be read, why."""
    descriptions = {}
    for name in grid_names():
        try:
            descriptions[name] = str(read_grid(find_grid(name)).values.get("description", ""))
        except UserError as error:
            descriptions[name] = str(error)
    return descriptions


def names_table(names: dict[str, list[str]]) -> Table:
    """Names by kind."""
    return _pairs("kind", "names", {kind: ", ".join(values) for kind, values in names.items()})


def grids_table(descriptions: dict[str, str]) -> Table:
    """Grids with what they say of themselves."""
    return _pairs("grid", "description", descriptions)


def _pairs(left: str, right: str, rows: dict[str, str]) -> Table:
    table = Table(show_edge=False)
    table.add_column(left, no_wrap=True)
    table.add_column(right, overflow="fold")
    for key, value in rows.items():
        table.add_row(key, value)
    return table


def json_rows(plan: Plan) -> list[dict[str, Any]]:
    """The rows of a plan for programs, which read ``holders`` where people read "actors"."""
    rows = [stage.row() for stage in plan.stages]
    return [row | {"runs as": "holders" if row["runs as"] == "actors" else row["runs as"]} for row in rows]


def health_table(found: Health) -> Table:
    """What :func:`geco_ray.cli.health.doctor.health` found, one fact a row."""
    table = Table(show_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _health_rows(found):
        table.add_row(name, text)
    return table


def _health_rows(found: Health) -> Iterator[tuple[str, str]]:
    machine, folders = found.machine, found.folders
    usable, there = machine["cpus_usable"], machine["cpus"]
    yield "python", machine["python"]
    yield "CPUs", str(usable) if usable == there else f"{usable} of {there} may be used by this process"
    sizes = (machine[name] for name in ("memory_gb", "memory_available_gb", "shared_memory_free_gb"))
    yield "memory", "{} GB, {} GB available, {} GB shared memory free".format(*map(_or_unknown, sizes))
    named = [f"{gpu['name']} ({_or_unknown(gpu['memory_gb'])} GB)" for gpu in machine["gpus"]]
    yield "GPUs", ", ".join(named) or "none: everything runs on CPUs"
    for name, version in found.packages.items():
        yield name, version or "missing"
    for host, answers in found.network.items():
        yield host, "reachable" if answers else "not reachable"
    if not found.network:
        yield "network", "not asked: GECO_RAY_OFFLINE"
    yield "data folder", folders["data"] or "not set"
    yield "cache", folders["cache"] or "none: this user has no home folder, and GECO_RAY_CACHE is not set"
    yield "run folder", _run_folder(folders)
    for asset in found.assets:
        yield asset.name, asset.found or "missing"


def _run_folder(folders: dict[str, Any]) -> str:
    if folders["runs_writable"] is None:
        return f"{folders['runs']}: a bucket, not looked at"
    if not folders["runs_writable"]:
        return f"{folders['runs']}: cannot be written; give another with --root"
    state = "is there" if folders["runs_exists"] else "will be made"
    return f"{folders['runs']}: {state}, writable, {_or_unknown(folders['runs_free_gb'])} GB free"


def _or_unknown(number: float | None) -> str:
    return "an unknown number of" if number is None else f"{number:g}"
