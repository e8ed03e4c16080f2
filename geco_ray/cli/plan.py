"""What ``geco-ray plan`` shows: axes, cells, what is left, what it will take, and what a run would not find."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from geco_ray.cells import Cell
from geco_ray.cli.console import axes_table, json_rows, plan_table
from geco_ray.cli.health.doctor import missing_packages
from geco_ray.cli.output import PlainConsole, labelled
from geco_ray.device import usable_cpus
from geco_ray.plan.benchmark import benchmarks, load_named, stage_owners
from geco_ray.plan.config import Grid
from geco_ray.plan.costs import duration, estimate, measured, shipped
from geco_ray.plan.remaining import Plan


def show_plan(grid: Grid, plan: Plan, data_dir: Path | None, as_json: bool, quiet: bool = False) -> None:
    """Show a plan, or, quietly, only whether a run could begin: exit code 0 or 2."""
    out, err = PlainConsole(), PlainConsole(stderr=True)
    missing = find_missing([cell for stage in plan.stages for cell in stage.left], data_dir)
    axes = {benchmark: json.loads(chosen.model_dump_json()) for benchmark, chosen in grid.chosen().items()}
    if as_json:
        told = {"grid": grid.name, "axes": axes, "stages": json_rows(plan), "left": plan.left}
        told |= {"estimates": estimates(plan), "missing": missing, "notes": plan.version_lines()}
        out.print_json(json.dumps(told))
    elif not quiet:
        out.print(axes_table(grid.name, axes))
        out.print(plan_table([stage.row() for stage in plan.stages]))
        print_estimates(estimates(plan), out)
        out.print(f"{plan.left} of {plan.total} cells left to do.")
        for line in plan.version_lines():
            out.print(f"{line}.", soft_wrap=True)
    if not as_json:
        print_missing(missing, err)
    if quiet and missing:
        raise typer.Exit(2)


def find_missing(cells: Sequence[Cell], data_dir: Path | None) -> list[str]:
    """One sentence for everything that a run of ``cells`` would not find or would refuse, with what to do about it."""
    owners = stage_owners()
    found = missing_packages()
    for benchmark in benchmarks():
        concerned = [cell for cell in cells if owners[cell.stage] is benchmark]
        if concerned and benchmark.find_missing is not None:
            found += load_named(benchmark.find_missing)(concerned, data_dir)
    return found


def estimates(plan: Plan) -> list[dict[str, Any]]:
    """What is left of each stage will take, in hours of a CPU core, and of a GPU where this folder has measured one."""
    rows = []
    for stage in plan.stages:
        on_cpu = estimate(stage.left, measured(stage.records), shipped())
        gpu = measured(stage.records, "cuda")
        gpu_hours = estimate(stage.left, gpu).seconds / 3600 if gpu.by_key else None
        rows.append(
            {
                "stage": stage.stage.name,
                "runs_as": stage.stage.runs_as,
                "cells": len(stage.left),
                "cpu_core_hours": on_cpu.seconds / 3600,
                "gpu_hours": gpu_hours,
                "disk_gb": on_cpu.bytes / 1e9,
                "by_this_folder": on_cpu.own,
                "by_the_package": on_cpu.shipped,
                "not_estimated": on_cpu.unknown,
            }
        )
    return rows


def print_estimates(rows: Sequence[dict[str, Any]], out: PlainConsole) -> None:
    """A table of what is left, and a sentence that says on what it rests."""
    left = [row for row in rows if row["cells"]]
    if not left:
        return
    table = Table(show_edge=False)
    for name in ("stage", "left", "core time", "disk"):
        table.add_column(name, justify="left" if name == "stage" else "right", no_wrap=True)
    for row in left:
        time = duration(3600 * row["cpu_core_hours"]) if row["cells"] > row["not_estimated"] else "unknown"
        table.add_row(row["stage"], f"{row['cells']:,}", time, _size(row["disk_gb"]))
    out.print(table)
    seconds = 3600 * sum(row["cpu_core_hours"] for row in left)
    sources = {name: sum(row[name] for row in left) for name in ("by_this_folder", "by_the_package", "not_estimated")}
    cpus = usable_cpus()
    here = f"{duration(seconds / cpus)} on the {cpus} here"
    out.print(
        f"About {duration(seconds)} of one core, {here}. "
        f"Estimated by cells of this run folder: {sources['by_this_folder']:,}; "
        f"by those measured for the package: {sources['by_the_package']:,}; not at all: {sources['not_estimated']:,}.",
        soft_wrap=True,
    )
    for row in left:
        if row["gpu_hours"] is not None:
            out.print(f"{row['stage']}: about {duration(3600 * row['gpu_hours'])} of one GPU, by cells of this folder.")


def print_missing(found: Sequence[str], out: PlainConsole) -> None:
    """One line for each; a command is copied whole."""
    for sentence in found:
        out.print(labelled("before a run:", "yellow", sentence), soft_wrap=True)


def _size(gigabytes: float) -> str:
    return f"{gigabytes:.1f} GB" if gigabytes >= 1 else f"{1000 * gigabytes:.0f} MB"
