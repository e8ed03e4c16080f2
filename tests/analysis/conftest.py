"""A ledger in memory, filled with plausible made-up results of both benchmarks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geco_ray.cells import Cell
from geco_ray.experiments.cfe.cells import BaseCell, CounterfactualCell, ValidityCell, VariantCell
from geco_ray.experiments.geco.cells import ExplainCell, ScoreCell, TrainCell
from geco_ray.registry import NoOptions
from geco_ray.seeds import numpy_stream

METHODS = {
    "uniform_random": 0.0, "saliency": 0.15, "kernel_shap": 0.12, "guided_backprop": 0.14, "deeplift": 0.15,
    "input_x_gradient": 0.4, "lime": 0.45, "gradient_shap": 0.55, "integrated_gradients": 0.6, "pattern_variant": 0.85,
}  # fmt: skip
PARADIGMS = {"BERT-ZS": -0.1, "BERT-C": -0.05, "BERT-CEf": 0.1, "BERT-CE": 0.08, "BERT-CEfAf": -0.02, "OLA-CEA": 0.2}
CFE_METHODS = {  # robustness, spread over families, distance, validity
    "wachter": (0.66, 0.2, 1.157, 1.0), "apas": (0.6, 0.35, 0.781, 1.0), "rbr": (0.77, 0.15, 1.097, 1.0),
    "kdtree": (0.945, 0.05, 1.554, 1.0), "rnce": (0.985, 0.02, 1.571, 1.0), "betarce": (0.97, 0.04, 1.86, 1.0),
    "roar_lime": (0.94, 0.06, 1.232, 0.73), "robx_balanced": (0.996, 0.003, 1.917, 1.0),
    "robx_robust": (0.999, 0.001, 2.616, 1.0),
}  # fmt: skip
FAMILIES = (
    "seed", "bootstrap", "deletion", "data_addition", "label_update", "training_config", "architecture",
    "bounded_parameter",
)  # fmt: skip
WORDS = ["she", "even", "touches", "the", "heart", "of", "her", "Aunt", ",", "who", "had", "never", "liked", "him", "."]
TRUTH = {"all": [1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0], "subj": [1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]}


@dataclass
class FakeRecord:
    id: str
    stage: str
    params: dict[str, Any]
    upstream: tuple[str, ...] = ()
    rows: int = 0
    info: dict[str, Any] = field(default_factory=dict)


class FakeLedger:
    """What the analysis needs of a ledger: records by stage, a table per record."""

    def __init__(self) -> None:
        self.cells: dict[str, tuple[FakeRecord, pa.Table]] = {}

    def put(self, cell: Cell, table: pa.Table) -> None:
        record = FakeRecord(cell.id, cell.stage, cell.params(), tuple(c.id for c in cell.upstream()), table.num_rows)
        self.cells[cell.id] = (record, table)

    def records(self, stage: str) -> list[FakeRecord]:
        return [record for record, _ in self.cells.values() if record.stage == stage]

    def table(self, record: FakeRecord) -> pa.Table:
        return self.cells[record.id][1]


def train_cell(dataset: str, paradigm: str, seed: int | None, protocol: str = "corrected") -> TrainCell:
    encoder = "wordpiece" if paradigm == "OLA-CEA" else "minilm"
    return TrainCell(dataset, "0" * 8, encoder, "1" * 8, paradigm, NoOptions(), seed, protocol)


def explain_table(truth: list[list[int]], correct: list[bool], scores: np.ndarray) -> pa.Table:
    """Rows whose attribution puts the share ``scores[i]`` on the truth words."""
    rows = []
    for number, (marks, right, share) in enumerate(zip(truth, correct, scores, strict=True)):
        mask = np.array(marks, dtype=bool)
        weights = np.where(mask, share / max(mask.sum(), 1), (1 - share) / max((~mask).sum(), 1))
        weights *= np.where(np.arange(len(mask)) % 2, 1, -1)
        rows.append(
            {"row": number, "sentence_idx": 2 * number, "target": number % 2, "gender": ("female", "male")[number % 2],
             "predicted": number % 2, "correct": right, "words": WORDS[: len(marks)], "truth": marks,
             "attribution": weights.astype(np.float32).tolist(), "completeness_gap": None}
        )  # fmt: skip
    types = {"truth": pa.list_(pa.int8()), "attribution": pa.list_(pa.float32()), "completeness_gap": pa.float64()}
    table = pa.Table.from_pylist(rows)
    for name, kind in types.items():
        table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
    return table


def history_table(accuracies: list[float], best: int = 1) -> pa.Table:
    """A training history whose saved epoch is ``best``, counted from 0."""
    at_best = [value if epoch == best else None for epoch, value in enumerate(accuracies)]
    columns: dict[str, Any] = {
        "epoch": list(range(1, len(accuracies) + 1)),
        "best": [epoch == best for epoch in range(len(accuracies))],
        "validation_accuracy": accuracies,
    }
    columns |= {
        f"{split}_accuracy_at_best": pa.array(at_best, pa.float64()) for split in ("train", "validation", "test")
    }
    return pa.table(columns)


def score_table(rows: list[tuple[float | None, bool, str | None]]) -> pa.Table:
    """(mass accuracy, correct, reason) per test row."""
    values = [
        {"row": n, "sentence_idx": 2 * n, "target": n % 2, "gender": "female", "predicted": 0, "correct": correct,
         "mass_accuracy": value, "reason": reason}
        for n, (value, correct, reason) in enumerate(rows)
    ]  # fmt: skip
    schema = pa.schema(
        [("row", pa.int64()), ("sentence_idx", pa.int64()), ("target", pa.int64()), ("gender", pa.string()),
         ("predicted", pa.int64()), ("correct", pa.bool_()), ("mass_accuracy", pa.float64()), ("reason", pa.string())]
    )  # fmt: skip
    return pa.Table.from_pylist(values, schema=schema)


def fill_geco(
    ledger: FakeLedger,
    datasets: tuple[str, ...] = ("binary_gender_all", "binary_gender_subj"),
    paradigms: tuple[str, ...] = tuple(PARADIGMS),
    methods: tuple[str, ...] = tuple(METHODS),
    seeds: int = 5,
    sentences: int = 40,
) -> None:
    for dataset in datasets:
        marks = TRUTH["all" if dataset.endswith("all") else "subj"]
        truth = [marks[: 8 + n % 8] for n in range(sentences)]
        shares = np.array([sum(t) / len(t) for t in truth])
        for paradigm in paradigms:
            for seed in (None,) if paradigm == "BERT-ZS" else range(seeds):
                rng = numpy_stream("fake", dataset, paradigm, seed)
                model = train_cell(dataset, paradigm, seed)
                accuracy = 0.8 if seed is None else 0.99 - 0.02 * rng.random()
                correct = (rng.random(sentences) < accuracy).tolist()
                ledger.put(model, history_table([0.5, accuracy]))
                for method in methods:
                    lift = METHODS[method] + (PARADIGMS[paradigm] if 0 < METHODS[method] < 0.8 else 0)
                    centre = shares + (1 - shares) * max(lift + 0.04 * rng.normal(), 0)
                    values = np.clip(centre + 0.1 * rng.normal(size=sentences), 0, 1)
                    explained = ExplainCell(model, method, NoOptions(), None)
                    ledger.put(explained, explain_table(truth, correct, values))
                    reasons = [None if n % 17 else "zero_attribution" for n in range(sentences)]
                    ledger.put(
                        ScoreCell(explained),
                        score_table(
                            [(float(v) if r is None else None, c, r)
                             for v, c, r in zip(values, correct, reasons, strict=True)]
                        ),
                    )  # fmt: skip


def counterfactual_table(statuses: list[str], distances: list[float | None]) -> pa.Table:
    count = len(statuses)
    return pa.table(
        {
            "factual_id": list(range(count)), "dataset_row_id": [7 * n for n in range(count)], "status": statuses,
            "reason": pa.array([None] * count, pa.string()), "base_probability": pa.array([None] * count, pa.float64()),
            "factual": [[0.0, 1.0]] * count, "counterfactual": [[0.5, 1.0]] * count,
            "distance": pa.array(distances, pa.float64()), "seconds": [0.01 * (n + 1) for n in range(count)],
        }
    )  # fmt: skip


def validity_table(statuses: list[str], valid: list[list[bool] | None], adverse: list[list[bool]]) -> pa.Table:
    count = len(statuses)
    return pa.table(
        {
            "factual_id": list(range(count)), "status": statuses, "base_valid": [s == "found" for s in statuses],
            "variant_valid": pa.array(valid, pa.list_(pa.bool_())),
            "factual_still_adverse": pa.array(adverse, pa.list_(pa.bool_())),
        }
    )  # fmt: skip


def variant_table(family: str, variant: int, base_seed: int) -> pa.Table:
    fixed = family in ("training_config", "architecture")
    level = f"setting_{variant}" if fixed else "level"
    seed = base_seed if fixed else base_seed + variant
    values = {"hard_disagreement": 0.04, "probability_mae": 0.05, "base_balanced_accuracy": 0.97,
              "balanced_accuracy": 0.96, "balanced_accuracy_drop": 0.01}  # fmt: skip
    return pa.Table.from_pylist([{"change_id": f"{family}:{variant}", "family": family, "level": level, "seed": seed,
                                  "draw": f"{level}:{seed}",
                                  **values, "weights": b"0"}])  # fmt: skip


def fill_cfe(
    ledger: FakeLedger,
    datasets: tuple[str, ...] = ("breast_cancer", "diabetes"),
    methods: tuple[str, ...] = tuple(CFE_METHODS),
    families: tuple[str, ...] = FAMILIES,
    base_seeds: tuple[int, ...] = (2026, 2027, 2028, 2029, 2030),
    variants: int = 25,
    requests: int = 20,
) -> None:
    for dataset in datasets:
        for base_seed in base_seeds:
            base = BaseCell(dataset, "0" * 8, base_seed, "paper")
            bank = {family: tuple(VariantCell(base, family, n) for n in range(variants)) for family in families}
            for family, cells in bank.items():
                for cell in cells:
                    ledger.put(cell, variant_table(family, cell.variant, base_seed))
            for method in methods:
                robustness, wobble, distance, validity = CFE_METHODS[method]
                rng = numpy_stream("fake", dataset, base_seed, method)
                statuses = ["found" if rng.random() < validity else "base_invalid" for _ in range(requests)]
                distances = [distance * (0.9 + 0.2 * rng.random()) if s == "found" else None for s in statuses]
                cell = CounterfactualCell(base, method, NoOptions(), "paper")
                ledger.put(cell, counterfactual_table(statuses, distances))
                for number, (family, variant_cells) in enumerate(bank.items()):
                    rate = np.clip(robustness + wobble * (number - 3.5) / 3.5 + 0.02 * rng.normal(), 0, 1)
                    valid = [(rng.random(variants) < rate).tolist() if s == "found" else None for s in statuses]
                    adverse = [(rng.random(variants) < 0.9).tolist() for _ in statuses]
                    ledger.put(ValidityCell(cell, family, variant_cells), validity_table(statuses, valid, adverse))


@pytest.fixture
def empty_ledger() -> FakeLedger:
    return FakeLedger()


@pytest.fixture(scope="session")
def full_ledger() -> FakeLedger:
    ledger = FakeLedger()
    fill_geco(ledger, ("binary_gender_all",), ("BERT-ZS", "BERT-C", "OLA-CEA"), seeds=3, sentences=20)
    fill_cfe(ledger, ("breast_cancer",))
    return ledger


@pytest.fixture(scope="session")
def kit() -> Any:
    """This module, for tests that build their own ledgers."""
    import sys

    return sys.modules[__name__]
