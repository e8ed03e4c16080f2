# ruff: noqa: E402  (kernels are chosen before NumPy is imported)
"""CPU seconds of the counterfactuals stage by method, and whether the points are still those of a run folder.

    python benchmarks/generation.py RUN --data-dir DATA --requests 64 --seeds 2026

Base models come from the run folder. Each method makes the first so many counterfactuals of each base model, in
batches of 64 as a run does; settings of one method share what they can. Points are compared bit by bit with the
folder's.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from geco_ray.arithmetic import set_arithmetic

set_arithmetic("pinned")

import pyarrow as pa
from tuning_sensitivity import bank_of

from geco_ray.cfe.data.datasets import load_dataset
from geco_ray.cfe.factuals import select_factuals
from geco_ray.cfe.generation import generate
from geco_ray.cfe.methods.base import METHODS, GenerationTask
from geco_ray.device import limit_threads
from geco_ray.ledger import Ledger

DATASETS = ("breast_cancer", "diabetes", "wine_quality", "heloc")


def main() -> None:
    """Measure, compare, and print a line per method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", help="a run folder of the grid cfe")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--methods", nargs="+", default=METHODS.names())
    parser.add_argument("--seeds", nargs="+", type=int, default=[2026])
    parser.add_argument("--requests", type=int, default=250)
    arguments = parser.parse_args()
    limit_threads(1)
    ledger, seconds, outcomes = Ledger(arguments.root), Counter[str](), {m: Counter[str]() for m in arguments.methods}
    for name in arguments.datasets:
        dataset = load_dataset(name, arguments.data_dir)
        for seed in arguments.seeds:
            base = bank_of(dataset, seed, ledger).base
            factuals, task = select_factuals(base, dataset.test), GenerationTask.of(dataset, base, "paper")
            rows, ids = factuals.x[: arguments.requests], factuals.ids[: arguments.requests].tolist()
            for method in arguments.methods:
                entry, started = METHODS.get(method), time.process_time()
                made = generate(entry.target(task, entry.parse_options()), task, rows, ids, ids)
                seconds[method] += time.process_time() - started
                outcomes[method] += compared(made, stored(ledger, name, seed, method))
    total = sum(seconds.values())
    for method, spent in seconds.most_common():
        found = ", ".join(f"{count} {word}" for word, count in sorted(outcomes[method].items()))
        print(f"{method:14} {spent:8.1f} CPU s {100 * spent / total:5.1f} %   {found}")
    print(f"{'all':14} {total:8.1f} CPU s")


def stored(ledger: Ledger, dataset: str, seed: int, method: str) -> list[pa.Table]:
    """The folder's tables of a method and base model under paper and paper, one for each setting."""
    wanted = {"dataset": dataset, "base_seed": seed, "seeding": "paper", "protocol": "paper", "method": method}
    records = [r for r in ledger.records("counterfactuals") if wanted.items() <= dict(r.params).items()]
    return [ledger.table(record) for record in records if record.params["kind"] == ""]


def compared(made: pa.Table, others: list[pa.Table]) -> Counter[str]:
    """How many points are the folder's, to the bit."""
    points = made["counterfactual"].to_pylist()
    best = Counter({"not in the folder": len(points)})
    for other in others:
        known = other["counterfactual"].to_pylist()[: len(points)]
        same = sum(a == b for a, b in zip(points, known, strict=True))
        found = Counter({word: n for word, n in (("the same", same), ("other", len(points) - same)) if n})
        best = found if found["the same"] >= best["the same"] else best
    return best


if __name__ == "__main__":
    main()
