"""The exact methods without a commercial solver: RNCE's candidate set, APΔS' search, and its proofs, in one run.

    python benchmarks/exact.py breast_cancer diabetes wine_quality heloc --data-dir DATA --requests 50

CPU seconds of this process on one thread decide, since the machine may be shared; on a loaded one they are some tens of
percent above those of a quiet one. Requests are a random sample over the five base models, the same on every run.
``within 0.1 %`` is the share of incumbents that are no more than that above the proven optimum of their margin, among
those with a proof.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch and NumPy start their threads
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.base_model import train_bases
from geco_ray.cfe.data.datasets import load_dataset
from geco_ray.cfe.factuals import select_factuals
from geco_ray.cfe.methods.apas.options import ApasOptions
from geco_ray.cfe.methods.apas.search import Apas, prove_request
from geco_ray.cfe.methods.base import METHODS, Answer, GenerationTask
from geco_ray.cfe.seeding import BASE_SEEDS, BaseKey
from geco_ray.cfe.training import Pool
from geco_ray.device import limit_threads
from geco_ray.seeds import numpy_stream


@dataclass(frozen=True, eq=False)
class Asked:
    """The sampled requests of one base model."""

    task: GenerationTask
    factuals: NDArray[np.float64]
    ids: list[int]


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--requests", type=int, default=50, help="sampled requests per data set (50)")
    parser.add_argument("--nodes", type=int, default=ApasOptions().proof_nodes, help="node budget of a proof")
    arguments = parser.parse_args()
    limit_threads(1)
    for name in arguments.datasets:
        sample = ask(name, arguments.data_dir, arguments.requests)
        print(f"\n{name}")
        rnce(sample)
        apas(sample, arguments.nodes)


def ask(name: str, data_dir: Path | None, requests: int) -> list[Asked]:
    """Train the base models and sample requests over all of them."""
    data = load_dataset(name, data_dir)
    pool, keys = Pool.of(data), [BaseKey(name, seed) for seed in BASE_SEEDS]
    made = []
    for base in train_bases(keys, pool):
        task = GenerationTask.of(data, base, "paper")
        made.append((task, select_factuals(base, data.test).x))
    every = [(place, row) for place, (_, x) in enumerate(made) for row in range(len(x))]
    drawn = numpy_stream("benchmark", "exact", name).permutation(len(every))[:requests]
    chosen = sorted(every[i] for i in drawn)
    sample = []
    for place, (task, x) in enumerate(made):
        ids = [row for at, row in chosen if at == place]
        sample.append(Asked(task, x[ids], ids))
    return sample


def rnce(sample: list[Asked]) -> None:
    """RNCE's candidate set for each base model."""
    entry = METHODS.get("rnce")
    for asked in sample:
        start = time.process_time()
        prepared = entry.target(asked.task, entry.parse_options({}))
        seconds = time.process_time() - start
        facts = ", ".join(f"{key} {value}" for key, value in prepared.set_up.items())
        rows = len(asked.task.train_x)
        print(f"  rnce {asked.task.base_seed}: {rows} rows in {seconds:.3f} CPU s ({facts})")


def apas(sample: list[Asked], nodes: int) -> None:
    """The search without proof, then the proof of what it accepted, request by request."""
    searched, search, set_up, radii = 0, 0.0, 0.0, []
    answers: list[tuple[Asked, int, Answer]] = []
    for asked in sample:
        start = time.process_time()
        prepared = Apas(asked.task, ApasOptions())
        set_up += time.process_time() - start
        radii.append(f"{prepared.set_up['radius']:.6f}")
        start = time.process_time()
        found = prepared.generate(asked.factuals, asked.ids)
        search += time.process_time() - start
        searched += len(found)
        answers += [(asked, place, answer) for place, answer in enumerate(found)]
    margins = sorted(Counter(f"{answer.columns['margin']:.2f}" for *_, answer in answers).items())
    print(f"  apas radii {' '.join(radii)}; set-up {set_up / len(sample):.2f} CPU s per base model")
    print(f"  apas search: {search / searched:.3f} CPU s per request, {searched} requests")
    print(f"    statuses {dict(Counter(answer.status for *_, answer in answers))}, margins {dict(margins)}")
    certified = np.mean([bool(answer.columns["certified"]) for *_, answer in answers])
    print(f"    certified by the hold-out {100 * certified:.1f} %")
    prove_all(answers, nodes)


def prove_all(answers: list[tuple[Asked, int, Answer]], nodes: int) -> None:
    """Prove each accepted point and print how many proofs end, what they cost and how good the points were."""
    seconds, spent, optimal, close = [], [], [], []
    for asked, place, answer in answers:
        if answer.point is None:
            continue
        factual, margin = asked.factuals[place], float(str(answer.columns["margin"]))
        start = time.process_time()
        result = prove_request(asked.task, factual, margin, answer.point, nodes)
        seconds.append(time.process_time() - start)
        spent.append(result.nodes)
        optimal.append(result.status == "optimal")
        if result.status == "optimal":
            close.append(float(str(answer.columns["l1_distance"])) <= 1.001 * result.distance)
    print(f"  apas proof: {100 * np.mean(optimal):.1f} % of {len(optimal)} proven optimal with {nodes} nodes")
    print(f"    {np.mean(seconds):.2f} CPU s per proof (median {np.median(seconds):.2f}, largest {max(seconds):.1f})")
    print(f"    nodes: mean {np.mean(spent):.0f}, none for {100 * np.mean(np.array(spent) == 0):.0f} %")
    print(f"    within 0.1 % of the optimum: {sum(close)} of {len(close)} proven")


if __name__ == "__main__":
    main()
