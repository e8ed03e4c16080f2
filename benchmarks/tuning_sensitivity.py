# ruff: noqa: E402  (kernels are chosen before NumPy is imported)
"""How much of ROAR-LIME's tuning is rounding: the rule on base models that differ in nothing else, and what follows.

    python benchmarks/tuning_sensitivity.py RUN --data-dir DATA

The base model of seed 2026 is trained again on the same rows in another order, which changes no sum but its rounding.
The rule is run on each of these models, and the scores of every trade-off are measured on the models of the run folder
``RUN``: all base models, requests and changed models. Two tables go to docs/results.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from geco_ray.arithmetic import set_arithmetic

set_arithmetic("pinned")

import numpy as np
import pandas as pd
import pyarrow as pa

from geco_ray.cfe import metrics
from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.data.datasets import Dataset, load_dataset
from geco_ray.cfe.factuals import select_factuals, tuning_factuals
from geco_ray.cfe.generation import generate
from geco_ray.cfe.methods.base import METHODS, GenerationTask
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.model_stack import StackedModels
from geco_ray.cfe.protocol import PROTOCOLS
from geco_ray.cfe.seeding import BASE_SEEDS, BaseKey
from geco_ray.cfe.training import Pool, base_job, train_stacked
from geco_ray.cfe.tuning import GRIDS, tune
from geco_ray.cfe.validity import validity_table
from geco_ray.device import limit_threads
from geco_ray.ledger import Ledger

TARGET = Path(__file__).parents[1] / "docs" / "results"
METHOD = "roar_lime"
METRICS = ("coverage", "base_validity", "empirical_robustness", "end_to_end_robustness", "distance")


def main() -> None:
    """Measure both and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", help="a run folder with all models")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--dataset", default="wine_quality")
    parser.add_argument("--models", type=int, default=21, help="base models, the first in the usual order (21)")
    parser.add_argument("--corrected", type=int, default=10, help="on so many of them also corrected's rule (10)")
    parser.add_argument("--to", type=Path, default=TARGET)
    arguments = parser.parse_args()
    limit_threads(1)
    dataset = load_dataset(arguments.dataset, arguments.data_dir)
    found = selections(dataset, arguments.models, arguments.corrected)
    found.to_csv(arguments.to / "counterfactuals_tuning_models.csv", index=False)
    curve(dataset, Ledger(arguments.root)).to_csv(arguments.to / "counterfactuals_tuning_curve.csv", index=False)


def selections(dataset: Dataset, models: int, corrected: int) -> pd.DataFrame:
    """What the rule selects on each base model, and how far the model is from the first in any validation row."""
    rows, first = [], None
    for number in range(models):
        base = reordered(dataset, number)
        p = base.model.probability(dataset.val.x)
        first = p if first is None else first
        row: dict[str, object] = {"order": number, "best_epoch": base.best_epoch, "difference": np.abs(p - first).max()}
        for protocol in PROTOCOLS:
            if protocol == "paper" or number < corrected:  # its rule asks eight times as many rows
                factuals = tuning_factuals(base, dataset.val, PROTOCOLS[protocol].tuning_rows)
                task = GenerationTask.of(dataset, base, protocol)
                row[protocol] = tune(METHOD, task, factuals.x).selected["trade_off"]
        rows.append(row)
        print(row, flush=True)
    return pd.DataFrame(rows)


def reordered(dataset: Dataset, number: int) -> BaseModel:
    """The base model of seed 2026, trained on the rows in order ``number``; 0 is the usual one."""
    pool, key = Pool.of(dataset), BaseKey(dataset.name, BASE_SEEDS[0])
    order = np.arange(len(pool.train_y))
    if number:
        order = np.random.default_rng(number).permutation(order)
    x = pool.x.copy()
    x[: len(order)] = pool.x[order]
    pool = replace(pool, x=x, train_y=pool.train_y[order])
    (trained,) = train_stacked([base_job(pool, key.initial_seed)], pool)
    return BaseModel(key, trained.model, trained.epochs, trained.best_epoch)


@dataclass
class Bank:
    """A base model and its changed models from a run folder."""

    base: BaseModel
    changed: StackedModels


def bank_of(dataset: Dataset, seed: int, ledger: Ledger) -> Bank:
    """The models of one base seed under ``seeding: paper``."""
    wanted = {"dataset": dataset.name, "data": dataset.fingerprint, "base_seed": seed, "seeding": "paper"}
    base, changed = None, []
    for record in ledger.records("models"):
        if all(record.params[name] == value for name, value in wanted.items()):
            model = Mlp.from_bytes(ledger.table(record)["weights"][0].as_py())
            if record.params["kind"] == "base":
                base = BaseModel(BaseKey(dataset.name, seed), model)
            else:
                changed.append(model)
    if base is None or not changed:
        raise SystemExit(f"{ledger.root} does not hold the models of {dataset.name}, base seed {seed}")
    return Bank(base, StackedModels(changed))


def curve(dataset: Dataset, ledger: Ledger) -> pd.DataFrame:
    """Coverage, base validity, empirical and end-to-end robustness, distance of every trade-off and base model."""
    rows = []
    for seed in BASE_SEEDS:
        bank = bank_of(dataset, seed, ledger)
        factuals, entry = select_factuals(bank.base, dataset.test), METHODS.get(METHOD)
        task = GenerationTask.of(dataset, bank.base, "paper")
        for point in GRIDS[METHOD]:
            prepared = entry.target(task, entry.parse_options(dict(point)))
            made = generate(prepared, task, factuals.x, factuals.ids.tolist(), factuals.row_ids.tolist())
            rows.append({"base_seed": seed, **point} | scores(made, validity_table(bank.changed, made)))
        print(f"base model {seed} done", flush=True)
    return pd.DataFrame(rows)


def scores(made: pa.Table, validity: pa.Table) -> dict[str, float | None]:
    """Fractions, and the mean distance of the base-valid answers."""
    counts = metrics.count_requests(made["status"].to_pylist(), made["distance"].to_pylist())
    counts |= metrics.count_pairs(validity["variant_valid"].to_pylist(), validity["factual_still_adverse"].to_pylist())
    return {name: metrics.METRICS[name].value(counts) for name in METRICS}


if __name__ == "__main__":
    main()
