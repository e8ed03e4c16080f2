"""The judge: statuses are decided by the base model and the point, whatever a method claims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from geco_ray.cfe.generation import generate
from geco_ray.cfe.methods.base import Answer, GenerationTask
from geco_ray.cfe.protocol import resolve_protocol
from geco_ray.errors import StorageError, UserError


class Scripted:
    """A method that answers from a list, or raises what the list holds."""

    def __init__(self, script: Sequence[object]) -> None:
        self.script, self.set_up = script, {}

    def generate(self, factuals: np.ndarray, factual_ids: Sequence[int]) -> list[Answer]:
        out = []
        for i in factual_ids:
            if isinstance(self.script[i], Exception):
                raise self.script[i]
            out.append(self.script[i])
        factuals[:] = 0.0  # a rude method; the caller's rows must survive it
        return out


def claim(point: object) -> Answer:
    return Answer(np.asarray(point, dtype=np.float64), "found", None, {"own": 1})


def test_statuses(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    good = toy_task.train_x[toy_task.model.favourable(toy_task.train_x)][0].astype(np.float64)
    bad = toy_factuals[8]
    script = [
        claim(good),
        claim(bad),
        claim(toy_factuals[2]),
        claim([np.nan, 0, 0, 0]),
        claim([0.0, 1.0]),
        ValueError("boom"),
        Answer(None, "budget", "steps", {"own": 2}),
        Answer(None, "found"),
    ]
    factuals = toy_factuals[:8].copy()
    rows = generate(Scripted(script), toy_task, factuals, range(8), range(50, 58)).to_pylist()
    assert np.array_equal(factuals, toy_factuals[:8])
    wanted = ["found", "base_invalid", "not_found", "error", "error", "error", "budget", "not_found"]
    assert [row["status"] for row in rows] == wanted
    assert [row["counterfactual"] is not None for row in rows] == [True, True] + [False] * 6
    assert [row["distance"] is not None for row in rows] == [True] + [False] * 7
    assert "non_finite" in rows[3]["reason"]
    assert "shape (2,)" in rows[4]["reason"]
    assert rows[5]["reason"] == "ValueError: boom"
    assert rows[6]["reason"] == "steps"
    assert [row["own"] for row in rows] == [1, 1, 1, 1, 1, None, 2, None]
    assert [row["dataset_row_id"] for row in rows] == list(range(50, 58))
    expected = np.abs(good - toy_factuals[0]) / toy_task.mad
    assert rows[0]["distance"] == pytest.approx(expected.mean())


def test_an_infinite_float32_is_not_valid(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    script = Scripted([claim([1e300, 1e300, 0, 0])])
    rows = generate(script, toy_task, toy_factuals[:1], [0], [0]).to_pylist()
    assert rows[0]["status"] == "error"
    assert rows[0]["base_probability"] is None


def test_wrong_number_of_answers_is_an_error(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    class Short(Scripted):
        def generate(self, factuals: np.ndarray, factual_ids: Sequence[int]) -> list[Answer]:
            return []

    rows = generate(Short([]), toy_task, toy_factuals[:2], range(2), range(2)).to_pylist()
    assert [row["status"] for row in rows] == ["error", "error"]
    assert "0 answers" in rows[0]["reason"]


def ask(script: Sequence[object], task: GenerationTask, factuals: np.ndarray, batch: int = 64) -> list[str]:
    k = len(script)
    return generate(Scripted(script), task, factuals[:k], range(k), range(k), batch)["status"].to_pylist()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
        ImportError("no scipy"),
        OSError("disk full"),
        StorageError("the run folder is gone"),
        UserError("no tuned value"),
    ],
)
@pytest.mark.parametrize("batch", [1, 64])
def test_the_machines_and_the_users_errors_are_not_a_requests(
    error: Exception, batch: int, toy_task: GenerationTask, toy_factuals: np.ndarray
) -> None:
    with pytest.raises(type(error)) as caught:
        ask([claim(toy_factuals[9]), error], toy_task, toy_factuals, batch)
    assert caught.value is error


def test_many_that_raise_are_a_fault_and_not_low_coverage(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    first = KeyError("first")
    script = [claim(toy_factuals[9]), first, ZeroDivisionError("second"), ValueError("third")]
    assert ask(script[:3], toy_task, toy_factuals).count("error") == 2
    for batch in (1, 64):
        with pytest.raises(RuntimeError, match=r"3 of 4 requests raised; the first, request 1: KeyError") as caught:
            ask(script, toy_task, toy_factuals, batch)
        assert caught.value.__cause__ is first


def test_five_in_a_hundred_may_raise(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    factuals = np.repeat(toy_factuals[:1], 60, axis=0)
    script = [ValueError("boom")] * 3 + [claim(toy_factuals[9])] * 57
    assert ask(script, toy_task, factuals).count("error") == 3
    with pytest.raises(RuntimeError, match="3 of 59"):
        ask(script[:59], toy_task, factuals)


def test_errors_that_a_method_reports_itself_stay_rows(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    script = [Answer(None, "error", "LIME's sample has one class")] * 6
    assert ask(script, toy_task, toy_factuals) == ["error"] * 6


def test_no_factuals_give_an_empty_table(toy_task: GenerationTask) -> None:
    assert generate(Scripted([]), toy_task, np.empty((0, 4)), [], []).num_rows == 0


def test_unequal_lengths_are_refused(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    with pytest.raises(ValueError, match="one length"):
        generate(Scripted([]), toy_task, toy_factuals[:2], [0], [0, 1])


def test_unknown_protocol_is_named() -> None:
    with pytest.raises(UserError, match="paper"):
        resolve_protocol("papers")


def test_streams_differ_by_request_and_method(toy_task: GenerationTask) -> None:
    draws = [toy_task.stream(m, i).random() for m in ("rbr", "betarce") for i in (0, 1)]
    assert len(set(draws)) == 4
    assert toy_task.stream("rbr", 1).random() == draws[1]
