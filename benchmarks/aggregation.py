"""How long the analysis takes for a large ledger: 2 million score rows, 5.6 million pairs of request and changed model.

Run ``python benchmarks/aggregation.py``; it makes the ledger up in memory (seeded), loads both topics, computes all
their tables of numbers and prints seconds of CPU and the peak of memory, that of the made-up ledger alone beside it.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.report import read_numbers
from geco_ray.cfe.changes.base import FAMILIES
from geco_ray.cfe.methods.base import METHODS
from geco_ray.geco.attribution.base import ATTRIBUTIONS
from geco_ray.geco.paradigms.base import PARADIGMS
from geco_ray.seeds import numpy_stream

TASKS = {
    "binary_gender_all": 960,
    "binary_gender_subj": 960,
    "non_binary_gender_all": 966,
    "non_binary_gender_subj": 966,
}
SETS = {"breast_cancer": 63, "diabetes": 56, "wine_quality": 250, "heloc": 250}
PROTOCOLS, SEEDS, VARIANTS = ("paper", "corrected"), 5, 25


@dataclass(frozen=True)
class Record:
    """A finished cell as the analysis sees it."""

    id: str
    params: dict[str, Any]
    info: dict[str, Any] = field(default_factory=dict)


class MadeUpLedger:
    """Records and tables of both benchmarks, held in memory."""

    def __init__(self) -> None:
        self._cells: dict[str, dict[str, tuple[Record, pa.Table]]] = {}
        for stage, params, table in [*_geco(), *_cfe()]:
            cells = self._cells.setdefault(stage, {})
            identity = f"{stage}{len(cells):012d}"
            cells[identity] = (Record(identity, params), table)

    def records(self, stage: str) -> list[Record]:
        """The stage's records."""
        return [record for record, _ in self._cells.get(stage, {}).values()]

    def table(self, record: Record) -> pa.Table:
        """The record's table."""
        (found,) = (cells[record.id] for cells in self._cells.values() if record.id in cells)
        return found[1]


def _geco() -> Iterator[tuple[str, dict[str, Any], pa.Table]]:
    paradigms = PARADIGMS.names()
    per_task = -(-2_000_000 // (4 * len(PROTOCOLS) * len(paradigms) * SEEDS * len(ATTRIBUTIONS.names())))
    for task in TASKS:
        shared = _explained(per_task)
        for protocol in PROTOCOLS:
            for paradigm in paradigms:
                for seed in range(SEEDS):
                    model = {"dataset": task, "encoder": "minilm", "paradigm": paradigm, "seed": seed,
                             "protocol": protocol, "paradigm_options": {}, "data": "0" * 64}  # fmt: skip
                    correct = numpy_stream("correct", task, paradigm, seed).random(per_task) < 0.95
                    for method in ATTRIBUTIONS.names():
                        params = model | {"method": method, "method_options": {}, "sentences": None}
                        if method == "saliency":  # attributions are not aggregated: a few tables give the truth
                            yield "explain", params, shared
                        yield "score", params, _scored(per_task, correct, (task, paradigm, seed, method))


def _explained(rows: int) -> pa.Table:
    truth = [[1, 0, 0, 0, 1, 0, 0, 0]] * rows
    return pa.table({"row": pa.array(range(rows), pa.int32()), "truth": pa.array(truth, pa.list_(pa.int8()))})


def _scored(rows: int, correct: np.ndarray[Any, Any], stream: tuple[Any, ...]) -> pa.Table:
    values = numpy_stream("score", *stream).random((6, rows))
    names = ("mass_accuracy", "roc_auc", "average_precision", "pr_auc", "precision_specificity", "top_k_precision")
    nothing = pa.nulls(rows, pa.string())
    return pa.table(
        {"row": pa.array(range(rows), pa.int32()), "sentence_idx": pa.array(np.arange(rows) // 2, pa.int32()),
         "correct": correct, "reason": nothing, "ranking_reason": nothing, **dict(zip(names, values, strict=True))}
    )  # fmt: skip


def _cfe() -> Iterator[tuple[str, dict[str, Any], pa.Table]]:
    for dataset, requests in SETS.items():
        for base_seed in range(2026, 2026 + SEEDS):
            for method in METHODS.names():
                params = {"dataset": dataset, "base_seed": base_seed, "seeding": "paper", "method": method,
                          "protocol": "paper", "method_options": {}}  # fmt: skip
                draws = numpy_stream("cfe", dataset, base_seed, method)
                ids = pa.array(range(requests), pa.int32())
                found = pa.array(["found"] * requests)
                yield "counterfactuals", params, pa.table(
                    {"factual_id": ids, "status": found, "reason": pa.nulls(requests, pa.string()),
                     "distance": draws.random(requests)}
                )  # fmt: skip
                for family in FAMILIES.names():
                    accepts, rejects = (draws.random((2, requests, VARIANTS)) < [[[0.9]], [[0.95]]]).tolist()
                    yield "validity", params | {"family": family}, pa.table(
                        {"factual_id": ids, "status": found, "base_valid": [True] * requests,
                         "variant_valid": pa.array(accepts, pa.list_(pa.bool_())),
                         "factual_still_adverse": pa.array(rejects, pa.list_(pa.bool_()))}
                    )  # fmt: skip


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    """Print what it took, as JSON."""
    ledger = MadeUpLedger()
    made, start, wall = _peak(), time.process_time(), time.perf_counter()
    numbers = read_numbers(ledger)
    slow: dict[str, float] = {"load": round(time.process_time() - start, 2)}
    for each in numbers:
        for file in each.topic.tables:
            begin = time.process_time()
            each.table(file)
            slow[file] = round(time.process_time() - begin, 2)
    rows = {each.topic.name: each.frames for each in numbers}
    print(json.dumps({
        "score_rows": len(rows["geco"].score), "pairs": int(rows["cfe"].validity["pairs"].sum()),
        "cpu_seconds": round(time.process_time() - start, 1), "wall_seconds": round(time.perf_counter() - wall, 1),
        "peak_mb_of_the_made_up_ledger": made, "peak_mb": _peak(), "seconds": slow,
    }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
