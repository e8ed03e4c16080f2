"""A run folder of a million finished cells, made up: what its index, a re-check and a plan of it take.

Run by hand: ``python benchmarks/million.py FOLDER [--cells N]``. The cells are those of a real grid (one data set, all
change families, as many base seeds as it takes), their records are real, their tables the same few bytes. Writes some
8 GB, and leaves the folder for further measurements; delete it afterwards.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

from geco_ray.cells import Cell
from geco_ray.ledger import Ledger, Record
from geco_ray.ledger.layout import cell_folder
from geco_ray.plan.config import load_grid
from geco_ray.plan.expand import expand

PER_SEED = 210  # cells of one base model: itself, 8 x 25 changed ones, one method's counterfactuals, 8 validities
TABLE = b"PAR1" + b"t" * 200 + b"PAR1"
INFO = {
    "seconds": 1.0, "cpu_seconds": 1.0, "device": "cpu", "host": "host", "geco_ray": "0.1.0", "python": "3.11.7",
    "finished": "2026-12-01T00:00:00+00:00", "threads": 1,
}  # fmt: skip

RECHECK = """
import sys
from geco_ray.ledger import Ledger
ledger = Ledger(sys.argv[1])
found = [ledger.scan(stage) for stage in ("models", "counterfactuals", "validity")]
print(sum(len(records) for records, _ in found), "whole,", sum(len(damaged) for _, damaged in found), "damaged")
"""


def write_grid(path: Path, cells: int) -> None:
    """A grid of about that many cells."""
    seeds = list(range(2026, 2026 + -(-cells // PER_SEED)))
    families = "seed, bootstrap, deletion, data_addition, label_update, training_config, architecture"
    path.write_text(
        f"description: made up\ncfe:\n  datasets: [breast_cancer]\n  base_seeds: {seeds}\n"
        f"  families: [{families}, bounded_parameter]\n  variants: 25\n  methods: [kdtree]\n"
        "  protocol: paper\n  seeding: paper\n"
    )


def synthesise(ledger: Ledger, cells: list[Cell]) -> None:
    """The files of finished cells, written as they come and not forced to disk."""
    root = Path(ledger.root)
    files = {"parquet": {"bytes": len(TABLE), "sha256": hashlib.sha256(TABLE).hexdigest()}}
    for folder in {cell_folder(ledger.layout(), cell.stage, cell.id) for cell in cells}:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for cell in cells:
        upstream = tuple(parent.id for parent in cell.upstream())
        record = Record(cell.id, cell.stage, cell.params(), upstream, 4, files, INFO)
        place = root / cell_folder(ledger.layout(), cell.stage, cell.id)
        for suffix, data in (("parquet", TABLE), ("json", record.to_json())):
            handle = os.open(place / f"{cell.id}.{suffix}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.write(handle, data)
            os.close(handle)


def measured(what: str, command: list[str]) -> None:
    """Run a command and print what it says last, seconds, seconds of CPU and the most memory it had."""
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(["/usr/bin/env", *command], capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    last = (done.stdout.strip() or done.stderr.strip() or "nothing").splitlines()[-1]
    print(f"{what:28s}{wall:8.1f} s {cpu:8.1f} s of CPU   exit {done.returncode}   {last[:100]}", flush=True)


def with_memory(code: str) -> list[str]:
    """Python code that ends by saying the most memory that its process had."""
    tail = "\nimport resource; print('at most', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, 'MB')"
    return [sys.executable, "-c", code + tail]


def main() -> None:
    """Fill the folder unless it is there, then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cells", type=int, default=1_000_000)
    given = parser.parse_args()
    grid, root = given.folder / "grid.yaml", given.folder / "run"
    ledger = Ledger(root)
    if not root.exists():
        given.folder.mkdir(parents=True, exist_ok=True)
        write_grid(grid, given.cells)
        cells = expand(*load_grid(str(grid)))
        ledger.fix_layout(len(cells))
        started = time.perf_counter()
        synthesise(ledger, cells)
        print(f"{len(cells):,} cells made up in {time.perf_counter() - started:.0f} s", flush=True)
        del cells
        time.sleep(6)  # records that are younger have no row
    index = (
        f"from geco_ray.ledger import Ledger\nledger = Ledger({str(root)!r})\n"
        "print([ledger.write_index(s, rebuild=True) for s in ('models', 'counterfactuals', 'validity')])"
    )
    size = (
        f"import pathlib; print(sum(p.stat().st_size for p in pathlib.Path({str(root)!r}, 'index').rglob('*.parquet')))"
    )
    words = ["plan", str(grid), "--root", str(root)]
    plan = f"from geco_ray.cli.app import app\napp({words!r}, standalone_mode=False)"
    measured("index, all records read", with_memory(index))
    measured("bytes of the index", [sys.executable, "-c", size])
    recheck = RECHECK.replace("sys.argv[1]", repr(str(root)))
    for _ in range(2):
        measured("re-check", [sys.executable, "-c", recheck])
    measured("re-check", with_memory(recheck))
    measured("plan", [sys.executable, "-c", plan])
    measured("plan", with_memory(plan))


if __name__ == "__main__":
    main()
