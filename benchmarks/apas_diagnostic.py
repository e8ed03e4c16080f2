# ruff: noqa: E402  (kernels are chosen before NumPy is imported)
"""APΔS with the radius of independently initialised models: how many requests get an answer (the paper: none).

    python benchmarks/apas_diagnostic.py RUN --data-dir DATA

For each base model of the run folder ten networks are trained from other initialisations, and the first five requests
are asked with the largest parameter distance to them as radius. The table goes to docs/results.
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
from geco_ray.cfe.factuals import select_factuals
from geco_ray.cfe.methods.apas.diagnostic import diagnose, independent_models
from geco_ray.cfe.methods.base import GenerationTask
from geco_ray.cfe.seeding import BASE_SEEDS
from geco_ray.device import limit_threads
from geco_ray.ledger import Ledger

FILE = Path(__file__).parents[1] / "docs" / "results" / "counterfactuals_apas_diagnostic.csv"
DATASETS = ("breast_cancer", "diabetes", "wine_quality", "heloc")


def main() -> None:
    """Run the diagnostic on each base model and write its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", help="a run folder with all models")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(BASE_SEEDS))
    parser.add_argument("--to", type=Path, default=FILE)
    arguments = parser.parse_args()
    limit_threads(1)
    ledger, rows = Ledger(arguments.root), []
    datasets = [load_dataset(name, arguments.data_dir) for name in DATASETS]
    for seed, dataset in ((seed, dataset) for seed in arguments.seeds for dataset in datasets):
        base, started = bank_of(dataset, seed, ledger).base, time.process_time()
        task, factuals = GenerationTask.of(dataset, base, "paper"), select_factuals(base, dataset.test)
        found = diagnose(task, independent_models(task), factuals.x, factuals.ids.tolist())
        row = {"dataset": dataset.name, "base_seed": seed, "radius": found.radius.value}
        rows.append(row | {"requests": len(found.answers), "returned": found.returned, **found.statuses})
        print(rows[-1], f"{time.process_time() - started:.0f} CPU s", flush=True)
        pd.DataFrame(rows).fillna(0).to_csv(arguments.to, index=False)  # each time: a long run may be cut short


if __name__ == "__main__":
    main()
