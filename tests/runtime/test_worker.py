"""A record says on which device its cell was really computed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch

from geco_ray.cells import Cell
from geco_ray.device import lost_device
from geco_ray.errors import DeviceLostError
from geco_ray.experiments import base
from geco_ray.experiments.base import Result, ServedStage, WorkerContext
from geco_ray.experiments.cfe.cells import BaseCell, CounterfactualCell, ValidityCell
from geco_ray.experiments.worker import ModelActor, run_pack
from geco_ray.ledger import Ledger
from geco_ray.registry import NoOptions

BASE = BaseCell("compas", "f" * 8, 2026, "paper")
VALIDITY = ValidityCell(CounterfactualCell(BASE, "kdtree", NoOptions(), "paper"), "seed", ())
HERE = "cuda:0" if torch.cuda.is_available() else "cpu"


class Model:
    def answer(self, cell: Cell) -> Result:
        return Result(pa.table({"x": [1]}))


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computations that take no time, in place of the benchmark's own."""
    monkeypatch.setattr(base, "_load_work", lambda stage: None)
    monkeypatch.setattr(base, "_computations", {})
    monkeypatch.setattr(base, "_served", {})

    @base.computation("models", "base")
    def compute(cells: Sequence[Any], ledger: Ledger, context: WorkerContext) -> Iterator[tuple[Cell, Result]]:
        for cell in cells:
            yield cell, Model().answer(cell)

    base.serve_stage("validity", ServedStage(lambda cell: "model", lambda cell, ledger, context: Model()))


def test_the_record_names_the_device_that_auto_stood_for(tmp_path: Path) -> None:
    context = WorkerContext(str(tmp_path), device="auto")
    assert run_pack([BASE], context)[0].error is None
    assert ModelActor(context).answer(VALIDITY).error is None
    ledger = Ledger(tmp_path)
    assert [ledger.require(cell).info["device"] for cell in (BASE, VALIDITY)] == [HERE, HERE]


def test_only_what_breaks_cuda_for_good_costs_the_process() -> None:
    assert lost_device(torch.AcceleratorError("CUDA error: device-side assert triggered"))
    assert not lost_device(torch.OutOfMemoryError("CUDA out of memory"))
    assert not lost_device(ValueError("a bad option"))
    wrapped = ValueError("the loss is not finite")
    wrapped.__cause__ = torch.AcceleratorError("CUDA error: an illegal memory access was encountered")
    assert lost_device(wrapped)


def test_no_cell_is_blamed_for_a_gpu_that_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Model, cell: Cell) -> Result:
        raise torch.AcceleratorError("CUDA error: device-side assert triggered\nCompile with")

    monkeypatch.setattr(Model, "answer", fail)
    context = WorkerContext(str(tmp_path), device="cpu")
    with pytest.raises(DeviceLostError, match=r"AcceleratorError: CUDA error: device-side assert triggered\)"):
        ModelActor(context).answer(VALIDITY)
    with pytest.raises(DeviceLostError):
        run_pack([BASE], context)
    assert Ledger(tmp_path).failures("models") == {}


def test_a_lost_gpu_that_cannot_be_emptied_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise torch.AcceleratorError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", refuse)
    ModelActor(WorkerContext("r", device="cpu")).release()


def test_a_cell_over_the_limit_has_failed_with_that_reason_and_the_actor_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = Model.answer

    def answer(self: Model, cell: Cell) -> Result:
        if cell in (BASE, VALIDITY):
            time.sleep(5)
        return quick(self, cell)

    monkeypatch.setattr(Model, "answer", answer)
    context = WorkerContext(str(tmp_path), device="cpu", cell_seconds=0.05)
    actor, other = ModelActor(context), BaseCell("compas", "f" * 8, 2027, "paper")
    for outcome in (actor.answer(VALIDITY), *run_pack([BASE], context)):
        assert "longer than 0.05 s, the limit of one cell" in str(outcome.error)
    assert actor.answer(replace(VALIDITY, family="bootstrap")).error is None
    assert [outcome.error is None for outcome in run_pack([BASE, other], context)] == [False, True]
    assert list(Ledger(tmp_path).failures("models")) == [BASE.id]
