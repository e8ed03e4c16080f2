# ruff: noqa: E402  (kernels are chosen before NumPy is imported)
"""The paper's Table 5: seconds of one request at a time, failures included and set-up excluded.

    python benchmarks/single_requests.py RUN --data-dir DATA --requests 50

The sample: the first so many requests of base model 2026 on each data set. CPU seconds of one thread, since the machine
may be shared. The base models come from the run folder; the table goes to docs/results.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from geco_ray.arithmetic import set_arithmetic

set_arithmetic("pinned")

import pandas as pd
from tuning_sensitivity import bank_of

from geco_ray.cfe.data.datasets import load_dataset
from geco_ray.cfe.factuals import Factuals, select_factuals
from geco_ray.cfe.generation import generate
from geco_ray.cfe.methods.base import METHODS, GenerationTask
from geco_ray.cfe.seeding import BASE_SEEDS
from geco_ray.device import limit_threads
from geco_ray.ledger import Ledger

FILE = Path(__file__).parents[1] / "docs" / "results" / "counterfactuals_single_requests.csv"
DATASETS = ("breast_cancer", "diabetes", "wine_quality", "heloc")


def main() -> None:
    """Time the requests of every method on every data set and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", help="a run folder with all models")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--requests", type=int, default=50, help="of each data set and method (50)")
    parser.add_argument("--to", type=Path, default=FILE)
    arguments = parser.parse_args()
    limit_threads(1)
    ledger, spent = Ledger(arguments.root), []
    for name in DATASETS:
        dataset = load_dataset(name, arguments.data_dir)
        base = bank_of(dataset, BASE_SEEDS[0], ledger).base
        task, factuals = GenerationTask.of(dataset, base, "paper"), select_factuals(base, dataset.test)
        for method in METHODS.names():
            seconds = time_each(method, task, factuals, arguments.requests)
            spent += [{"dataset": name, "method": method, "seconds": value} for value in seconds]
            print(name, method, f"{len(seconds)} requests, mean {sum(seconds) / len(seconds):.4f} CPU s", flush=True)
    summary(pd.DataFrame(spent)).to_csv(arguments.to, index=False, float_format="%.4g")


def time_each(method: str, task: GenerationTask, factuals: Factuals, count: int) -> list[float]:
    """CPU seconds of each of the first requests; one that is not of the sample builds what a first request builds."""
    entry = METHODS.get(method)
    prepared = entry.target(task, entry.parse_options())
    last = len(factuals) - 1
    generate(prepared, task, factuals.x[last:], [last], [last])
    seconds = []
    for i in range(min(count, last)):
        started = time.process_time()
        generate(prepared, task, factuals.x[i : i + 1], [i], [int(factuals.row_ids[i])])
        seconds.append(time.process_time() - started)
    return seconds


def summary(spent: pd.DataFrame) -> pd.DataFrame:
    """Per method over all data sets: requests, the least of a data set, mean, sd (ddof 1), median, p90, max."""
    groups = spent.groupby("method")["seconds"]
    table = groups.agg(["size", "mean", "std", "median", lambda s: s.quantile(0.9), "max"])
    table.columns = ["requests", "mean", "sd", "median", "p90", "max"]
    table.insert(1, "least_of_a_data_set", spent.groupby(["method", "dataset"]).size().groupby("method").min())
    return table.reset_index()


if __name__ == "__main__":
    main()
