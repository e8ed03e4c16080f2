"""What the command line does with a run folder besides filling it: check it, set damaged cells aside, see who runs."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console

from geco_ray.cli.output import PlainConsole
from geco_ray.errors import UserError
from geco_ray.ledger import DamagedCell, Ledger
from geco_ray.ledger.partial import kept_work, remove_kept
from geco_ray.ledger.storage import LocalStorage
from geco_ray.table import amount

if TYPE_CHECKING:
    from geco_ray.ledger.digests import Comparison
    from geco_ray.plan.remaining import Plan

T = TypeVar("T")
DropCheckpoints = Annotated[
    bool, typer.Option("--drop-checkpoints", help="Remove what interrupted trainings kept for going on.")
]


def grid_command(
    verb: str,
    name: str,
    overrides: Sequence[str] | None,
    root: str,
    data_dir: Path | None = None,
    plugins: Sequence[str] | None = None,
) -> str:
    """A command on the same grid and folders, as one may paste it."""
    options = [*(["--root", root] if root != "runs" else ()), *(["--data-dir", str(data_dir)] if data_dir else ())]
    for plugin in plugins or ():
        options += ["--plugins", plugin]
    return shlex.join(["geco-ray", verb, name, *(overrides or ()), *options])


def require_folder(ledger: Ledger) -> None:
    """Refuse a run folder that is not there: a mistyped one would pass for an empty one. A bucket is not asked.

    Raises:
        UserError: there is no such folder.
    """
    if isinstance(ledger.storage, LocalStorage) and not ledger.storage.folder.is_dir():
        raise UserError(
            f"there is no run folder {ledger.root}", where="--root", remedy="Give the folder that the run was given"
        )


def scan_folder(ledger: Ledger, ids: Collection[str] | None = None) -> tuple[int, dict[str, dict[str, str]]]:
    """Read every file of the finished cells (of ``ids`` if given): how many are intact, and stage to id to fault."""
    from geco_ray.plan.benchmark import stages

    intact, wrong = 0, {}
    for stage in stages():
        records, problems = ledger.scan(stage, indexed=False)
        problems = {cell_id: fault for cell_id, fault in problems.items() if ids is None or cell_id in ids}
        for record in records.values():
            if ids is not None and record.id not in ids:
                continue
            fault = ledger.verify(record)
            intact += fault is None
            if fault is not None:
                problems[record.id] = fault
        if problems:
            wrong[stage] = problems
    return intact, wrong


def without_damaged(report: Callable[[], T], ledger: Ledger, ids: Collection[str], err: Console, remedy: str) -> T:
    """What ``report`` gives, after setting aside the cells whose damage shows only when they are read.

    Args:
        remedy: the sentence that tells how they are computed again.

    Raises:
        DamagedCell: a file that cannot be read, and not since its content is wrong. LeaseError: a run is going on.
    """
    from geco_ray.runtime.lease import lease

    try:
        return report()
    except DamagedCell as error:
        if error.cell is None:
            raise
    with lease(ledger.storage):
        _, wrong = scan_folder(ledger, ids)  # all at once: one after another would take a command each
        for stage, problems in wrong.items():
            ledger.quarantine(stage, problems)
    count = sum(map(len, wrong.values()))
    _say(
        err, f"set aside {amount(count, 'damaged cell', 'damaged cells')}, moved to {ledger.root}/quarantine; {remedy}"
    )
    return report()


def unneeded(plan: Plan, ledger: Ledger) -> dict[str, int]:
    """Id to bytes of the checkpoints that no cell which is left to do can go on from."""
    left = {cell.id for stage in plan.stages for cell in stage.left}
    return {name: size for name, size in kept_work(ledger.storage).items() if name not in left}


def show_unneeded(plan: Plan, ledger: Ledger, out: Console) -> None:
    """One line, if there are any."""
    if found := unneeded(plan, ledger):
        size, command = sum(found.values()) / 1e9, shlex.join(["geco-ray", "check", "--drop-checkpoints", "--root"])
        counted = amount(len(found), "checkpoint is of a cell", "checkpoints are of cells")
        _say(out, f"{counted} that this grid does not need ({size:.1f} GB); `{command} {ledger.root}` removes all")


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True)


def check(
    root: Annotated[str, typer.Option(help="Where results are kept: a folder, or s3://bucket/path.")] = "runs",
    repair: Annotated[bool, typer.Option(help="Set damaged cells aside, so that the next run repeats them.")] = False,
    drop_checkpoints: DropCheckpoints = False,
    reindex: Annotated[bool, typer.Option(help="Write the index of the records again, of stages with many.")] = False,
    digests: Annotated[Path | None, typer.Option(help="Write a digest of each cell's content to this file.")] = None,
    against: Annotated[Path | None, typer.Option(help="Compare with the digests of another run folder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Read every file of a run folder and compare it with its checksum; tell which kernels computed the cells."""
    from geco_ray.arithmetic import kernel_groups, kernel_warning
    from geco_ray.ledger.digests import compare_digests
    from geco_ray.plan.benchmark import stages
    from geco_ray.runtime.lease import lease

    ledger, out = Ledger(root), PlainConsole()
    require_folder(ledger)
    with lease(ledger.storage) if repair or drop_checkpoints or reindex else contextlib.nullcontext():
        intact, wrong = scan_folder(ledger)
        _drop(ledger, repair, drop_checkpoints, Console(stderr=True))
        _set_right(ledger, wrong if repair else {}, reindex)
    infos = [record.info for stage in stages() for record in ledger.records(stage)]
    damaged = [{"stage": stage, "id": i, "problem": p} for stage, found in wrong.items() for i, p in found.items()]
    usable = repair or not damaged  # damaged cells have no digest
    if digests is not None and usable:
        _write_digests(ledger, digests, Console(stderr=True))
    compared = compare_digests(ledger, list(stages()), against) if against is not None and usable else None
    if as_json:
        facts = {"whole": intact, "damaged": damaged, "set aside": len(damaged) if repair else 0}
        out.print_json(json.dumps(facts | {"kernels": kernel_groups(infos)} | _against(compared)))
    else:
        _show_check(out, ledger, intact, damaged, repair)
        if (warning := kernel_warning(infos)) is not None:
            _say(out, warning)
        if compared is not None:
            _show_comparison(out, compared, str(against))
    if not usable or (compared is not None and not compared.agrees):
        raise typer.Exit(1)


def _set_right(ledger: Ledger, wrong: Mapping[str, Mapping[str, str]], reindex: bool) -> None:
    from geco_ray.plan.benchmark import stages

    for stage, problems in wrong.items():
        ledger.quarantine(stage, problems)
    for stage in stages() if reindex else ():
        ledger.write_index(stage, rebuild=True)


def _drop(ledger: Ledger, repair: bool, everything: bool, err: Console) -> None:
    from geco_ray.plan.benchmark import stages

    if not repair and not everything:
        return
    finished = None if everything else {name for stage in stages() for name in ledger.done(stage)}
    if count := remove_kept(ledger.storage, finished):
        _say(err, f"removed {amount(count, 'checkpoint', 'checkpoints')}")


def _against(compared: Comparison | None) -> dict[str, Any]:
    return (
        {}
        if compared is None
        else {"against": compared.counts() | {"ids": compared.differing, "notes": compared.notes}}
    )


def _show_check(out: Console, ledger: Ledger, whole: int, damaged: list[dict[str, str]], repair: bool) -> None:
    _say(out, f"{whole} cells whole, {len(damaged)} damaged in {ledger.root}")
    for item in damaged:
        _say(out, f"{item['stage']} {item['id']}: {item['problem']}")
    if damaged and repair:
        _say(
            out,
            f"set aside {amount(len(damaged), 'cell', 'cells')}, moved to {ledger.root}/quarantine; run the grid again",
        )
    elif damaged:
        _say(out, f"`{ledger.repair_command()}` sets them aside; then run the grid again.")


def _write_digests(ledger: Ledger, path: Path, err: Console) -> None:
    from geco_ray.ledger.digests import write_digests
    from geco_ray.plan.benchmark import stages

    count = write_digests(ledger, list(stages()), path)
    _say(err, f"wrote the digests of {amount(count, 'cell', 'cells')} to {path}")


_LISTED = 10  # differing cells that are named; a JSON answer names all


def _show_comparison(out: Console, compared: Comparison, file: str) -> None:
    counts = compared.counts()
    for kind, words in (
        ("equal", f"the same as in {file}"), ("differing", "differ"), ("missing", "are not in this run folder"),
        ("extra", "are not in the file"),
    ):  # fmt: skip
        if counts[kind]:
            by_stage = ", ".join(f"{count:,} {stage}" for stage, count in counts[kind].items())
            _say(out, f"{sum(counts[kind].values()):,} cells {words}: {by_stage}")
    named = [f"{stage} {cell}" for stage, ids in compared.differing.items() for cell in ids]
    for line in named[:_LISTED]:
        _say(out, f"differs: {line}")
    if len(named) > _LISTED:
        _say(out, f"and {len(named) - _LISTED:,} more (--json names all)")
    for note in compared.notes:
        _say(out, f"note: {note}")
