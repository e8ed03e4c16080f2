"""What every counterfactual method must do, one generic case for all; a method without a case fails the
meta-test.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pytest

from geco_ray.cfe.generation import SCHEMA, generate
from geco_ray.cfe.methods.base import METHODS, GenerationTask, Prepared
from geco_ray.testing import check_counterfactual_method


@dataclass(frozen=True)
class Case:
    """How to test one method: quick options, and options whose budget ends after one step."""

    quick: dict[str, object] = field(default_factory=dict)
    tight: dict[str, object] | None = None
    columns: tuple[str, ...] = ("steps",)
    requests: int = 66


CASES = {
    "kdtree": Case(),
    "rnce": Case(),
    "apas": Case(quick={"starts": 2}, tight={"max_programs": 1}, columns=("linear_programs",), requests=8),
    "wachter": Case(quick={"trade_off": 0.1, "learning_rate": 0.01, "max_steps": 400}, tight={"max_steps": 1}),
    "robx_balanced": Case(
        quick={"samples": 100, "max_steps": 60}, tight={"max_steps": 1, "max_shells": 30}, columns=("steps",)
    ),
    "robx_robust": Case(
        quick={"samples": 100, "max_steps": 60}, tight={"max_steps": 1, "max_shells": 30}, columns=("steps",)
    ),
    "roar_lime": Case(quick={"trade_off": 0.05, "samples": 1000, "max_steps": 500}, tight={"max_steps": 1}),
    "rbr": Case(quick={"max_steps": 8}, tight={"max_steps": 1}, requests=27),
    "betarce": Case(
        quick={"members": 3, "threshold": 0.4, "samples": 30},
        tight={"max_start_shells": 1, "max_shells": 1},
        columns=("start_shells", "shells"),
    ),
}

PROTOCOLS = ("paper", "corrected")


STATUSES = {"found", "base_invalid", "not_found", "budget", "error"}


def prepared(name: str, task: GenerationTask, options: dict[str, object] | None = None) -> Prepared:
    entry = METHODS.get(name)
    return entry.target(task, entry.parse_options(CASES[name].quick | (options or {})))


def run(name: str, task: GenerationTask, factuals: np.ndarray, **options: object) -> pa.Table:
    ids = list(range(len(factuals)))
    return generate(prepared(name, task, options), task, factuals, ids, [100 + i for i in ids])


def results(table: pa.Table) -> list[dict[str, object]]:
    """Rows without the two columns that say how the work was batched."""
    return table.drop_columns(["seconds", "batch"]).to_pylist()


def test_every_method_has_a_case() -> None:
    assert set(METHODS.names()) <= set(CASES), "add a Case for the new method to CASES"


def test_listing_methods_imports_nothing_heavy(assert_imports_nothing: Callable[..., str]) -> None:
    code = "from geco_ray.cfe.methods.base import METHODS; METHODS.names()"
    assert_imports_nothing(code, ["torch", "sklearn", "scipy", "ray", "highspy"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", CASES)
class TestMethod:
    def test_claims_are_judged(
        self, name: str, protocol: str, toy_task: GenerationTask, toy_factuals: np.ndarray
    ) -> None:
        task = replace(toy_task, protocol=protocol)
        table = run(name, task, toy_factuals[:12])
        assert table.schema.names[: len(SCHEMA.names)] == SCHEMA.names
        rows = table.to_pylist()
        assert [row["factual_id"] for row in rows] == list(range(12))
        assert {row["status"] for row in rows} <= STATUSES
        assert any(row["status"] == "found" for row in rows)
        for row in rows:
            if row["status"] == "found":
                point = np.array([row["counterfactual"]])
                assert task.model.probability(point)[0] == pytest.approx(row["base_probability"], abs=1e-6)
                assert row["base_probability"] >= 0.5
                assert row["counterfactual"] != row["factual"]
                assert row["distance"] > 0
                assert row["reason"] is None
            else:
                assert row["reason"]
                assert row["distance"] is None

    def test_batch_and_order_change_nothing(
        self, name: str, protocol: str, toy_task: GenerationTask, toy_factuals: np.ndarray
    ) -> None:
        task = replace(toy_task, protocol=protocol)
        k = CASES[name].requests
        ready = prepared(name, task)
        whole = results(generate(ready, task, toy_factuals[:k], range(k), range(k), batch=64))
        some = list(range(0, k, 13))
        alone = generate(ready, task, toy_factuals[some], some, some, batch=1)
        assert results(alone) == [whole[i] for i in some]
        order = np.random.default_rng(0).permutation(k)[:10]
        shuffled = generate(prepared(name, task), task, toy_factuals[order], order, order, batch=3)
        assert results(shuffled) == [whole[i] for i in order]

    def test_leaves_inputs_and_global_random_state_alone(
        self, name: str, protocol: str, toy_task: GenerationTask, toy_factuals: np.ndarray
    ) -> None:
        import torch

        task = replace(toy_task, protocol=protocol)
        before = toy_factuals[:3].copy()
        states = (random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state())
        answers = prepared(name, task).generate(toy_factuals[:3], [0, 1, 2])
        assert len(answers) == 3
        assert random.getstate() == states[0]
        assert np.array_equal(np.random.get_state()[1], states[1])
        assert torch.equal(torch.get_rng_state(), states[2])
        assert np.array_equal(toy_factuals[:3], before)

    def test_keeps_to_the_rules_that_others_are_held_to(self, name: str, protocol: str) -> None:
        found = check_counterfactual_method(METHODS.get(name), CASES[name].quick, protocol=protocol)
        assert found.faults == []

    def test_no_requests(self, name: str, protocol: str, toy_task: GenerationTask) -> None:
        assert prepared(name, replace(toy_task, protocol=protocol)).generate(np.empty((0, 4)), []) == []

    @pytest.mark.parametrize("fixture", ["one_row_task", "one_class_task", "hopeless_task"])
    def test_degenerate_tasks_end_in_a_status(
        self, name: str, protocol: str, fixture: str, toy_factuals: np.ndarray, request: pytest.FixtureRequest
    ) -> None:
        task = replace(request.getfixturevalue(fixture), protocol=protocol)
        small = CASES[name].tight if fixture == "hopeless_task" else None
        rows = run(name, task, toy_factuals[:2], **(small or {})).to_pylist()
        assert {row["status"] for row in rows} <= STATUSES
        if fixture == "hopeless_task":
            assert not any(row["status"] == "found" for row in rows)
        assert all(row["reason"] for row in rows if row["status"] != "found")
        assert not any("Error:" in (row["reason"] or "") for row in rows), (
            "expected failures are answers, not exceptions"
        )


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.tight])
class TestSearch:
    def test_respects_its_budget(
        self, name: str, protocol: str, toy_task: GenerationTask, toy_factuals: np.ndarray
    ) -> None:
        tight = CASES[name].tight or {}
        rows = run(name, replace(toy_task, protocol=protocol), toy_factuals[:3], **tight).to_pylist()
        assert all(row[column] <= 1 for row in rows for column in CASES[name].columns)

    def test_safety_limit_ends_in_budget(
        self, name: str, protocol: str, toy_task: GenerationTask, toy_factuals: np.ndarray
    ) -> None:
        rows = run(name, replace(toy_task, protocol=protocol, time_limit=0.0), toy_factuals[:2]).to_pylist()
        assert {row["status"] for row in rows} == {"budget"}
