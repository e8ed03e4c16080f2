"""After a run: print the tables, and write the report unless it already stands for exactly these cells."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from analysis.publish import publish
from analysis.styles import Titles
from analysis.topic import Topic, topics
from geco_ray import __version__
from geco_ray.cells import Cell
from geco_ray.ledger import Ledger

_STAMP = "cells.sha256"


def report_folder(root: str, grid: str) -> Path:
    """Where a grid's report lies: in the run folder, or under ``./runs`` when that is a bucket."""
    base = Path("runs") if "://" in root else Path(root)
    return base / "report" / grid


def refresh_report(
    ledger: Ledger, cells: Sequence[Cell], grid: str, console: Console | None, data_dir: Path | None = None,
    person_rows: bool = True,
) -> Path:  # fmt: skip
    """Print the tables of the finished ones of ``cells`` (unless ``console`` is None) and see to the report's files.

    The report's folder holds a stamp of the cells that it shows and of their titles, and the SHA-256 of its files; when
    all that is the same, no file is opened for writing, and a file that is missing or was changed is written again.
    ``data_dir`` is the folder of the user's data, whose cards give titles. ``person_rows`` is False where rows that may
    be of persons stay out of the page.

    Raises:
        StorageError: the folder cannot be written.
    """
    from analysis.report import print_tables, read_numbers, write_report

    ids = {cell.id for cell in cells}
    folder = report_folder(ledger.root, grid)
    stamp = _stamp(ledger, cells, data_dir) + (b"" if person_rows else b" without rows")
    stale = not _stands(folder, stamp)
    numbers = read_numbers(ledger, ids, data_dir, person_rows) if stale or console is not None else None
    if console is not None:
        print_tables(ledger, ids, console, numbers)
    if stale:
        written = write_report(ledger, ids, folder, grid, numbers, cells)
        publish(folder, {_STAMP: _with_files(stamp, written)})
    if console is not None:
        address = (folder / "index.html").resolve().as_uri()  # the last line of a run: a terminal makes a link of it
        console.print(f"Tables, figures and all rows: {address}", highlight=False, soft_wrap=True)
    return folder


def _stamp(ledger: Ledger, cells: Sequence[Cell], data_dir: Path | None) -> bytes:
    """What the report depends on: the cells, what their methods and data sets are called, and the code that renders."""
    ids = {cell.id for cell in cells}
    finished = sorted(name for stage in {cell.stage for cell in cells} for name in ledger.done(stage) if name in ids)
    digest = hashlib.sha256(f"{__version__} {' '.join(finished)}".encode())
    for stage in sorted({cell.stage for cell in cells}):  # what the page says of missing cells
        failures = {name: str(failure.get("error")) for name, failure in ledger.failures(stage).items() if name in ids}
        digest.update(json.dumps([stage, len(ids), sorted(failures.items())]).encode())
    found = topics()
    for topic in found:
        digest.update(json.dumps(_titles(topic, cells, data_dir)).encode())
    ours = [path for path in Path(__file__).parent.rglob("*") if path.suffix in (".py", ".html", ".js")]
    theirs = {Path(inspect.getfile(part)) for topic in found for part in (topic.load, topic.views, topic.figures)}
    for path in sorted({*ours, *theirs}):
        digest.update(path.read_bytes())
    return digest.hexdigest().encode()


def _titles(topic: Topic[Any], cells: Sequence[Cell], data_dir: Path | None) -> list[list[tuple[str, str, str]]]:
    """What the names in the parameters of a topic's cells are called and look like, by kind."""
    stages = {stage.name for stage in topic.stages}
    params = [cell.params() for cell in cells if cell.stage in stages]
    titles = Titles(topic.names, data_dir=data_dir)
    used = {names.kind: {own[names.kind] for own in params if own.get(names.kind)} for names in topic.names}
    return [
        [(name, title, repr(titles.kind(kind).profile(name))) for name, title in sorted(titles.of(kind, names).items())]
        for kind, names in used.items()
    ]


def _with_files(stamp: bytes, files: Sequence[Path]) -> bytes:
    """A stamp's first line is of what the report depends on; a line per file follows, as ``sha256sum`` writes it."""
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in files]
    return b"".join([stamp, b"\n", *(f"{line}\n".encode() for line in lines)])


def _stands(folder: Path, stamp: bytes) -> bool:
    """Whether the report is that of ``stamp`` and each of its files is there as it was written."""
    try:
        first, *lines = (folder / _STAMP).read_text(encoding="utf-8").splitlines()
        files = [line.split("  ", 1) for line in lines]
        same = all(hashlib.sha256((folder / name).read_bytes()).hexdigest() == sha for sha, name in files)
    except (OSError, ValueError):
        return False
    return first.encode() == stamp and bool(files) and same
