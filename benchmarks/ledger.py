"""What the ledger costs at the size of the full grid: scan, plan, verify and commit, as ratios to plain file reading.

Run by hand: ``python benchmarks/ledger.py [CELLS]`` (5,500 by default).
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from geco_ray.cells import Cell
from geco_ray.experiments.cfe.cells import BaseCell, VariantCell
from geco_ray.ledger import Ledger, Record
from geco_ray.plan.remaining import make_plan


def timed(work: Callable[[], object]) -> float:
    """Seconds of the fastest of three runs."""
    spans = []
    for _ in range(3):
        started = time.perf_counter()
        work()
        spans.append(time.perf_counter() - started)
    return min(spans)


def grid(count: int) -> list[Cell]:
    """``count`` fresh cells (ids not yet computed), variants of a few base models."""
    bases = [BaseCell("breast_cancer", "0" * 64, seed, "paper") for seed in range(20)]
    variants = [VariantCell(bases[n % 20], "seed", n // 20) for n in range(count - 20)]
    return [*bases, *variants]


def fill(ledger: Ledger, cells: list[Cell]) -> float:
    """Commit every cell with a table of usual size; seconds per cell."""
    table = pa.table({"change_id": ["x"] * 4, "value": [0.5] * 4, "weights": [b"w" * 4000] * 4})
    started = time.perf_counter()
    for cell in cells:
        ledger.put(cell, table, info={"seconds": 1.0})
    return (time.perf_counter() - started) / len(cells)


def read_all(folder: Path) -> int:
    """The floor: the bytes of all records, parsed as JSON and nothing more."""
    return sum(len(json.loads(path.read_bytes())) for path in folder.glob("*.json"))


def main(count: int) -> None:
    """Fill a temporary ledger, time it, print."""
    with tempfile.TemporaryDirectory() as root:
        ledger = Ledger(root)
        commit = fill(ledger, grid(count))
        folder = Path(root) / "cells" / "models"
        floor = timed(lambda: read_all(folder))
        records: list[Record] = ledger.records("models")
        scan = timed(lambda: ledger.scan("models"))
        plan = timed(lambda: make_plan(grid(count), ledger, 25))
        verify = timed(lambda: [ledger.verify(record) for record in records])
        tables = timed(lambda: [ledger.table(record) for record in records])
    print(f"{count} cells; reading and parsing their records and nothing else: {floor:.2f} s (= 1.0)")
    for name, seconds in (("scan", scan), ("expand + scan + plan", plan), ("verify", verify), ("read tables", tables)):
        print(f"{name:24s}{seconds:8.2f} s {seconds / floor:8.1f}")
    print(f"{'commit of one cell':24s}{commit * 1000:8.2f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5500)
