# ruff: noqa: E402  (kernels are chosen before NumPy is imported)
"""The counterfactual methods: seconds per request, one at a time and in batches, and their scores, in one run.

    python benchmarks/counterfactuals.py breast_cancer diabetes --data-dir DATA
    python benchmarks/counterfactuals.py heloc --data-dir DATA --methods rbr robx_robust --seeds 2026 --requests 64

CPU seconds of this process decide, since the machine may be shared; wall seconds stand beside them. ``bar`` is what
a batch of 64 may take per request: a share of what a plain unbatched implementation needs, whose smallest and largest
data set mean are in ``counterfactual_reference.json``, with the scores that it reached under ``protocol: paper``.
``--root RUN`` takes the models from a run folder of the grid instead of training them; ``--no-scores`` leaves the
changed models out.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch and NumPy start their threads
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from geco_ray.arithmetic import set_arithmetic

set_arithmetic("pinned")

import numpy as np
import pyarrow as pa

from geco_ray.cfe import metrics
from geco_ray.cfe.bank import build_bank
from geco_ray.cfe.base_model import BaseModel, train_base
from geco_ray.cfe.changes.base import family_names
from geco_ray.cfe.data.datasets import Dataset, load_dataset
from geco_ray.cfe.factuals import Factuals, select_factuals
from geco_ray.cfe.generation import generate
from geco_ray.cfe.methods.base import METHODS, GenerationTask, Prepared
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.model_stack import StackedModels
from geco_ray.cfe.seeding import BASE_SEEDS, BaseKey
from geco_ray.cfe.training import Pool
from geco_ray.cfe.validity import validity_table
from geco_ray.device import limit_threads
from geco_ray.ledger import Ledger

REFERENCE = json.loads(Path(__file__).with_name("counterfactual_reference.json").read_text())
DETERMINISTIC = ("kdtree", "rnce")


@dataclass
class Changed:
    """Changed models and the family of each."""

    models: list[Mlp]
    families: list[str]


@dataclass
class Score:
    """One method on one base model; rates in percent, ``None`` where undefined."""

    coverage: float | None
    base_validity: float | None
    robustness: float | None
    families: dict[str, float | None]
    distance: float | None


@dataclass
class Cost:
    """CPU (and wall) seconds of one method on one base model."""

    set_up: float
    batch: float
    batch_wall: float
    single: float


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--methods", nargs="+", default=METHODS.names())
    parser.add_argument("--seeds", nargs="+", type=int, default=list(BASE_SEEDS))
    parser.add_argument("--protocol", default="paper")
    parser.add_argument("--requests", type=int, help="the first so many factuals of each base model (all)")
    parser.add_argument("--singles", type=int, default=8, help="factuals to ask one at a time (8)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--root", type=Path, help="a run folder that has the models")
    parser.add_argument("--no-scores", action="store_true")
    arguments = parser.parse_args()
    limit_threads(1)
    for name in arguments.datasets:
        dataset = load_dataset(name, arguments.data_dir)
        costs: dict[str, list[Cost]] = {method: [] for method in arguments.methods}
        scores: dict[str, list[Score]] = {method: [] for method in arguments.methods}
        for seed in arguments.seeds:
            base, changed = models(dataset, seed, arguments)
            factuals = select_factuals(base, dataset.test)
            task = GenerationTask.of(dataset, base, arguments.protocol, arguments.device)
            for method in arguments.methods:
                cost, table = measure(method, task, factuals, arguments)
                costs[method].append(cost)
                if changed is not None:
                    scores[method].append(score(table, changed))
        print_costs(name, arguments, costs)
        if not arguments.no_scores:
            print_scores(name, arguments, scores)


def models(dataset: Dataset, seed: int, arguments: Any) -> tuple[BaseModel, Changed | None]:
    """The base model of ``seed`` and, unless scores are left out, its changed models."""
    if arguments.root:
        base, changed = stored(dataset, seed, Ledger(arguments.root))
        return base, None if arguments.no_scores else changed
    base = train_base(BaseKey(dataset.name, seed), Pool.of(dataset))
    if arguments.no_scores:
        return base, None
    variants = build_bank(base, dataset).variants
    return base, Changed([one.model for one in variants], [one.spec.family for one in variants])


def stored(dataset: Dataset, seed: int, ledger: Ledger) -> tuple[BaseModel, Changed]:
    """The same from a run folder; however many changed models it has are taken."""
    key, found, changed = BaseKey(dataset.name, seed), None, Changed([], [])
    wanted = {"dataset": key.dataset, "data": dataset.fingerprint, "base_seed": seed, "seeding": key.seeding}
    for record in ledger.records("models"):
        if all(record.params[name] == value for name, value in wanted.items()):
            model = Mlp.from_bytes(ledger.table(record)["weights"][0].as_py())
            if record.params["kind"] == "base":
                found = BaseModel(key, model)
            else:
                changed.models.append(model)
                changed.families.append(record.params["family"])
    if found is None or not changed.models:
        raise SystemExit(f"{ledger.root} lacks models of {key.base_model_id}")
    return found, changed


def measure(method: str, task: GenerationTask, factuals: Factuals, arguments: Any) -> tuple[Cost, pa.Table]:
    """Set-up, all requests in batches of 64, and a few of them one at a time."""
    started = time.process_time()
    entry = METHODS.get(method)
    prepared = entry.target(task, entry.parse_options())
    ask(prepared, task, factuals, 1, 1)  # what a method builds with its first request belongs to the set-up
    set_up, wall = time.process_time() - started, time.perf_counter()
    table, batch = ask(prepared, task, factuals, arguments.requests or len(factuals), 64)
    wall = (time.perf_counter() - wall) / max(table.num_rows, 1)
    alone = replace(task)  # or the single requests would find what the batch has computed
    single = ask(entry.target(alone, entry.parse_options()), alone, factuals, arguments.singles, 1)[1]
    return Cost(set_up, batch, wall, single), table


def ask(prepared: Prepared, task: GenerationTask, factuals: Factuals, first: int, batch: int) -> tuple[pa.Table, float]:
    """The first so many requests, and the CPU seconds that each took."""
    ids = factuals.ids[:first].tolist()
    started = time.process_time()
    table = generate(prepared, task, factuals.x[:first], ids, factuals.row_ids[:first].tolist(), batch=batch)
    return table, (time.process_time() - started) / max(len(ids), 1)


def score(table: pa.Table, changed: Changed) -> Score:
    """The metrics of one method on one base model."""
    requests = metrics.count_requests(table["status"].to_pylist(), table["distance"].to_pylist())
    validity = validity_table(StackedModels(changed.models), table)
    survived, adverse = validity["variant_valid"].to_pylist(), validity["factual_still_adverse"].to_pylist()
    by_family = {}
    for name in family_names():
        own = [number for number, family in enumerate(changed.families) if family == name]
        answers = [None if answer is None else [answer[number] for number in own] for answer in survived]
        pairs = metrics.count_pairs(answers, [[answer[number] for number in own] for answer in adverse])
        by_family[name] = percent("empirical_robustness", pairs)
    return Score(
        percent("coverage", requests),
        percent("base_validity", requests),
        percent("empirical_robustness", metrics.count_pairs(survived, adverse)),
        by_family,
        metrics.METRICS["distance"].value(requests),
    )


def percent(metric: str, counts: dict[str, float]) -> float | None:
    """The metric in percent."""
    value = metrics.METRICS[metric].value(counts)
    return None if value is None else 100 * value


def print_costs(name: str, arguments: Any, costs: dict[str, list[Cost]]) -> None:
    """One line per method: set-up, one at a time, in batches of 64, and the bar."""
    print(f"\n{name}, {arguments.protocol}, {arguments.device}: CPU seconds (mean over base models)")
    print(f"{'method':14} {'set-up':>8} {'one':>9} {'batch':>9} {'wall':>9} {'one/batch':>9}  bar")
    for method, own in costs.items():
        set_up, batch, wall, single = (
            float(np.mean([getattr(cost, field) for cost in own]))
            for field in ("set_up", "batch", "batch_wall", "single")
        )
        line = f"{method:14} {set_up:8.2f} {single:9.5f} {batch:9.5f} {wall:9.5f} {single / batch:9.1f}  "
        share = REFERENCE["allowed_share"].get(method)
        if share is not None:
            low, high = (share * seconds for seconds in REFERENCE["plain_seconds"][method])
            verdict = "below all" if batch <= low else "within" if batch <= high else "ABOVE"
            line += f"{low:.3f} to {high:.3f}: {verdict}"
        print(line, flush=True)


def print_scores(name: str, arguments: Any, scores: dict[str, list[Score]]) -> None:
    """One line per method: means over base models, and the reference below it where there is one."""
    names = family_names()
    print(f"\n{name}, {arguments.protocol}: percent over {len(arguments.seeds)} base models")
    print(
        f"{'method':14} {'cover':>6} {'valid':>6} {'robust':>7} {'sd':>4}  {' '.join(n[:6] for n in names)}  distance"
    )
    for method, own in scores.items():
        robustness = [s.robustness for s in own if s.robustness is not None]
        sd = float(np.std(robustness, ddof=1)) if len(robustness) > 1 else float("nan")
        families = [mean(s.families[n] for s in own) for n in names]
        overall, distance = mean(s.robustness for s in own), mean(s.distance for s in own)
        cells = " ".join(f"{value:6.1f}" for value in families)
        covered, valid = mean(s.coverage for s in own), mean(s.base_validity for s in own)
        print(f"{method:14} {covered:6.1f} {valid:6.1f} {overall:7.1f} {sd:4.1f}  {cells}  {distance:.3f}")
        wanted = REFERENCE["results"].get(name, {}).get(method)
        if wanted is None or arguments.protocol != "paper" or len(own) < len(BASE_SEEDS) or arguments.requests:
            continue
        cells = " ".join(f"{wanted['families'][n]:6.1f}" for n in names)
        allowed = 4.0 if method == "apas" else 1.0 if method in DETERMINISTIC else 2.0
        off = max(abs(a - wanted["families"][n]) for a, n in zip(families, names, strict=True))
        far = abs(distance / wanted["distance"] - 1)
        fine = abs(overall - wanted["robustness"]) <= allowed and far <= 0.03
        verdict = "agrees" if fine and off <= allowed else "agrees over all" if fine else "DIFFERS"
        print(
            f"  reference    {wanted['coverage']:6.1f} {wanted['base_validity']:6.1f} {wanted['robustness']:7.1f} "
            f"{wanted['robustness_sd']:4.1f}  {cells}  {wanted['distance']:.3f}  {verdict} "
            f"(largest family difference {off:.1f}, distance {100 * far:.1f} %)",
            flush=True,
        )


def mean(values: Any) -> float:
    """Mean of those that are defined, NaN if none is."""
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else float("nan")


if __name__ == "__main__":
    main()
