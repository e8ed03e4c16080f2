"""How long it takes to load and audit the four GECO tasks.

    python benchmarks/geco_audit.py [--data-dir DIR] [--runs N]

Prints the median seconds of N runs in one process and the share of each part.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from geco_ray.geco.audit.audit import audit, read_splits
from geco_ray.geco.data.dataset import load_task
from geco_ray.geco.data.sources import GECO_TASKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    seconds: dict[str, list[float]] = {"load": [], "load and audit": []}
    for _ in range(given.runs):
        start = time.perf_counter()
        rows = sum(len(task.train) + len(task.test) for task in (load_task(n, given.data_dir) for n in GECO_TASKS))
        seconds["load"].append(time.perf_counter() - start)
        start = time.perf_counter()
        result = audit([split for name in GECO_TASKS for split in read_splits(name, given.data_dir)])
        seconds["load and audit"].append(time.perf_counter() - start)
    for name, values in seconds.items():
        print(f"{name}: {statistics.median(values):.2f} s (median of {len(values)}, worst {max(values):.2f} s)")
    print(f"{rows} rows, {result.defects.num_rows} findings")


if __name__ == "__main__":
    main()
