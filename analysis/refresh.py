"""After a run: print the tables, and write the report unless it already stands for exactly these cells."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from analysis.publish import publish
from geco_ray import __version__
from geco_ray.cells import Cell
from geco_ray.ledger import Ledger

_STAMP = "cells.sha256"


def report_folder(root: str, grid: str) -> Path:
    """Where a grid's report lies: in the run folder, or under ``./runs`` when that is a bucket."""
    base = Path("runs") if "://" in root else Path(root)
    return base / "report" / grid


def refresh_report(ledger: Ledger, cells: Sequence[Cell], grid: str, console: Console | None) -> Path:
    """Print the tables of the finished ones of ``cells`` (unless ``console`` is None) and see to the report's files.

    The report's folder holds a stamp of the cells that it shows; when it is the same, no file is opened for writing.

    Raises:
        StorageError: the folder cannot be written.
    """
    from analysis.report import print_tables, read_numbers, write_report

    ids = {cell.id for cell in cells}
    folder = report_folder(ledger.root, grid)
    stamp = _stamp(ledger, ids, {cell.stage for cell in cells})
    stale = _read(folder / _STAMP) != stamp
    numbers = read_numbers(ledger, ids) if stale or console is not None else None
    if console is not None:
        print_tables(ledger, ids, console, numbers)
    if stale:
        write_report(ledger, ids, folder, grid, numbers)
        publish(folder, {_STAMP: stamp})
    if console is not None:
        console.print(f"Tables and figures: {folder / 'index.html'}", highlight=False, soft_wrap=True)
    return folder


def _stamp(ledger: Ledger, ids: set[str], stages: set[str]) -> bytes:
    """What the report depends on: the cells, and the code that renders them."""
    finished = sorted(cell_id for stage in stages for cell_id in ledger.done(stage) if cell_id in ids)
    digest = hashlib.sha256(f"{__version__} {' '.join(finished)}".encode())
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix in (".py", ".html"):
            digest.update(path.read_bytes())
    return digest.hexdigest().encode()


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
