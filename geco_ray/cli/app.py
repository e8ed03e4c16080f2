"""The verbs of ``geco-ray`` that work on a grid, and where all others come in."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from geco_ray.arithmetic import set_arithmetic
from geco_ray.cells import Cell
from geco_ray.cli import check as cli_folder
from geco_ray.cli import cluster_checks as cluster_check
from geco_ray.cli import data as cli_data
from geco_ray.cli import exchange as cli_exchange
from geco_ray.cli import extend
from geco_ray.cli import plan as cli_plan
from geco_ray.cli.check import grid_command
from geco_ray.cli.components import list_names
from geco_ray.cli.console import json_rows
from geco_ray.cli.output import PlainConsole
from geco_ray.cli.plugins import Plugins, Redo, load_plugins, set_aside
from geco_ray.cli.state import status as cli_status
from geco_ray.cli.state.failures import failed_cells, show_failures
from geco_ray.cli.tune import tune
from geco_ray.errors import UserError
from geco_ray.ledger import Ledger
from geco_ray.plan.benchmark import DEFAULT_PACK
from geco_ray.plan.config import Grid, RunSettings, load_grid
from geco_ray.plan.expand import expand
from geco_ray.plan.remaining import Plan, make_plan

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="GECOBench and robust counterfactuals as one experiment grid on Ray.",
)
app.add_typer(cli_data.app, name="data")
app.command(name="cluster-check")(cluster_check.command)
app.command(name="check")(cli_folder.check)
app.command(name="ls")(list_names)
app.command()(tune)
app.command(name="new")(extend.new_component)
app.command(name="test")(extend.check_component)
app.command(name="export")(cli_exchange.export)
app.command(name="submit")(cli_exchange.submit)
out = PlainConsole()
err = PlainConsole(stderr=True)

_WATCH_SECONDS = 5.0

Name = Annotated[str, typer.Argument(help="A grid: demo, geco, cfe, full, or the path of a YAML file.")]
Overrides = Annotated[list[str] | None, typer.Argument(help="KEY=VALUE, such as geco.seeds=[0,1] or only=cfe.")]
Root = Annotated[str, typer.Option(help="Where results are kept: a folder, or s3://bucket/path.")]
DataDir = cli_data.DataDir
Arithmetic = Annotated[str, typer.Option(help="pinned: the same kernels on any x86-64; native: its own.")]
Checkpoints = Annotated[
    str, typer.Option(help="disk, root (in a bucket too) or off: where long trainings are kept between epochs.")
]
CellSeconds = Annotated[float | None, typer.Option(help="A cell that takes longer has failed (no limit by default).")]
Json = Annotated[bool, typer.Option("--json", help="Print the table as JSON.")]


def _check_data_dir(data_dir: Path | None) -> None:
    if data_dir is not None and not data_dir.is_dir():
        raise UserError(
            "there is no such folder", where=f"--data-dir {data_dir}", remedy="Give the folder of your data"
        )


def _gather(
    name: str, overrides: list[str] | None, root: str, data_dir: Path | None, plugins: list[str] | None
) -> tuple[Grid, list[Cell], Ledger]:
    _check_data_dir(data_dir)
    load_plugins(plugins)
    grid, text = load_grid(name, overrides or ())
    cells = expand(grid, text, data_dir.absolute() if data_dir else None)
    return grid, cells, Ledger(root)


@app.command()
def run(
    name: Name,
    overrides: Overrides = None,
    root: Root = "runs",
    data_dir: DataDir = None,
    plugins: Plugins = None,
    redo: Redo = None,
    executor: Annotated[str, typer.Option(help="ray, or inline: everything in this process.")] = "ray",
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Only show what would be done.")] = False,
    as_json: Json = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    cpus: Annotated[int | None, typer.Option(min=1, help="CPUs to use on this machine (all by default).")] = None,
    gpus: Annotated[int | None, typer.Option(min=0, help="GPUs to use on this machine (all by default).")] = None,
    gpus_per_trial: Annotated[float | None, typer.Option(min=0, help="GPU share of a training trial.")] = None,
    gpus_per_actor: Annotated[float | None, typer.Option(min=0, help="GPU share of an actor.")] = None,
    actors: Annotated[int | None, typer.Option(min=1, help="Number of actors, each with a model of its own.")] = None,
    pack: Annotated[int, typer.Option(min=1, help="Most cells computed together in one trial.")] = DEFAULT_PACK,
    address: Annotated[str | None, typer.Option(help="A running Ray cluster: auto, or HOST:PORT.")] = None,
    quiet: Annotated[bool, typer.Option(help="No progress.")] = False,
    arithmetic: Arithmetic = "pinned",
    checkpoints: Checkpoints = "disk",
    cell_seconds: CellSeconds = None,
) -> None:
    """Run what is left of a grid, then write and print its report. The same command again resumes."""
    settings = _settings(
        root=root, data_dir=data_dir, executor=executor, device=device, cpus=cpus, gpus=gpus,
        gpus_per_trial=gpus_per_trial, gpus_per_actor=gpus_per_actor, actors=actors, pack=pack, address=address,
        quiet=quiet or as_json, arithmetic=arithmetic, checkpoints=checkpoints, cell_seconds=cell_seconds,
    )  # fmt: skip
    set_arithmetic(settings.arithmetic)  # here, since planning loads NumPy
    grid, cells, ledger = _gather(name, overrides, root, data_dir, plugins)
    if dry_run:
        cli_plan.show_plan(grid, make_plan(cells, ledger, pack), data_dir, as_json, quiet)
        return
    set_aside(redo, cells, ledger, err)
    plan = _compute(make_plan(cells, ledger, pack), cells, settings)
    see = grid_command("status", name, overrides, root, data_dir, plugins)
    _finish(grid, cells, plan, ledger, as_json, see, "the same command again repairs it", data_dir)


def _compute(plan: Plan, cells: list[Cell], settings: RunSettings) -> Plan:
    if not plan.left:
        return plan
    from geco_ray.runtime.run import run_plan

    for line in plan.version_lines():
        err.print(f"{line}. They are computed again.", soft_wrap=True)
    return run_plan(plan, cells, settings, err)


def _settings(executor: str, data_dir: Path | None, **values: Any) -> RunSettings:
    from pydantic import ValidationError

    try:
        return RunSettings.model_validate(
            values | {"executor": executor, "data_dir": data_dir.absolute() if data_dir else None}
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        raise UserError(f"{option}: {first['msg']}", found=first["input"]) from None


def _finish(
    grid: Grid,
    cells: list[Cell],
    plan: Plan,
    ledger: Ledger,
    as_json: bool,
    see: str,
    remedy: str,
    data_dir: Path | None,
    person_rows: bool = True,
) -> None:
    """Report on what is there, say what is not, and end with the exit code that is true."""
    from analysis.refresh import refresh_report

    def report() -> Path:
        return refresh_report(ledger, cells, grid.name, None if as_json else out, data_dir, person_rows)

    folder = cli_folder.without_damaged(report, ledger, {cell.id for cell in cells}, err, remedy)
    plan = make_plan(cells, ledger) if not plan.left else plan  # again: cells may have been set aside
    if as_json:
        out.print_json(json.dumps({"grid": grid.name, "stages": json_rows(plan), "report": str(folder)}))
    if plan.left:
        err.print(
            f"{plan.left} of {plan.total} cells are not done. `{see}` says which and why; running again does them.",
            soft_wrap=True,
        )
        raise typer.Exit(1)


@app.command(name="plan")
def plan_command(
    name: Name,
    overrides: Overrides = None,
    root: Root = "runs",
    data_dir: DataDir = None,
    plugins: Plugins = None,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option(help="Only check: exit code 2 if a run could not begin.")] = False,
) -> None:
    """Show a grid's axes, cells, what is left, what it will take and what is missing (as run --dry-run)."""
    grid, cells, ledger = _gather(name, overrides, root, data_dir, plugins)
    cli_plan.show_plan(grid, make_plan(cells, ledger), data_dir, as_json, quiet)


@app.command()
def status(
    name: Name,
    overrides: Overrides = None,
    root: Root = "runs",
    data_dir: DataDir = None,
    plugins: Plugins = None,
    as_json: Json = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again every few seconds while a run goes on.")
    ] = False,
) -> None:
    """Show what is done, failed and left, with each failure's error. Works while a run is going."""
    from geco_ray.runtime.lease import lease_holder

    _, cells, ledger = _gather(name, overrides, root, data_dir, plugins)
    cli_folder.require_folder(ledger)
    see = grid_command("failures", name, overrides, root, data_dir, plugins)
    while True:
        plan, holder = make_plan(cells, ledger), lease_holder(ledger.storage)
        if as_json:
            out.print_json(json.dumps(cli_status.document(plan, ledger, holder)))
            return
        if watch:
            out.clear()
        cli_status.show(plan, ledger, holder, see, out)
        if not watch or holder is None:
            return
        time.sleep(_WATCH_SECONDS)


@app.command()
def failures(
    name: Name, overrides: Overrides = None, root: Root = "runs", data_dir: DataDir = None,
    plugins: Plugins = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Show the cells that failed, grouped by their fault, with a traceback of each. Works while a run is going."""
    _, cells, ledger = _gather(name, overrides, root, data_dir, plugins)
    show_failures(failed_cells(make_plan(cells, ledger), ledger), ledger, out, as_json)


@app.command()
def report(
    name: Name, overrides: Overrides = None, root: Root = "runs", data_dir: DataDir = None,
    plugins: Plugins = None, as_json: Json = False,
    no_rows: Annotated[bool, typer.Option("--no-rows", help="Leave rows that may be of persons out.")] = False,
) -> None:  # fmt: skip
    """Write a grid's tables, figures and page from what is finished, and print them."""
    grid, cells, ledger = _gather(name, overrides, root, data_dir, plugins)
    cli_folder.require_folder(ledger)
    plan = make_plan(cells, ledger)
    see, again = (grid_command(verb, name, overrides, root, data_dir, plugins) for verb in ("status", "run"))
    _finish(grid, cells, plan, ledger, as_json, see, f"`{again}` repairs it", data_dir, not no_rows)


@app.command()
def view(
    name: Name, overrides: Overrides = None, root: Root = "runs", data_dir: DataDir = None, plugins: Plugins = None
) -> None:
    """Open a grid's page in the browser, brought up to what is finished; print its address."""
    from analysis.refresh import refresh_report
    from geco_ray.cli.state.view import show_page

    grid, cells, ledger = _gather(name, overrides, root, data_dir, plugins)
    cli_folder.require_folder(ledger)
    show_page(refresh_report(ledger, cells, grid.name, None, data_dir), out, err)


@app.command()
def doctor(root: Root = "runs", data_dir: DataDir = None, as_json: Json = False) -> None:
    """Show versions, devices, encoders, data and folders, and what is missing with the command that gets it."""
    from geco_ray.cli.console import health_table
    from geco_ray.cli.health.doctor import health

    _check_data_dir(data_dir)
    found = health(root, data_dir)
    if as_json:
        out.print_json(json.dumps(found.document()))
        return
    out.print(health_table(found))
    for remedy in found.remedies:
        out.print(remedy, markup=False, soft_wrap=True)  # a command is copied whole
    if not found.remedies:
        out.print("Nothing is missing.")
