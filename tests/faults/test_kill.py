"""SIGKILL at any instant: no finished cell is lost, none is half there, and the next run ends with the same bytes."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from geco_ray.cells import Cell
from geco_ray.errors import LeaseError
from geco_ray.experiments import base as work
from geco_ray.experiments.base import Result, WorkerContext
from geco_ray.experiments.cfe.cells import BaseCell, VariantCell
from geco_ray.experiments.worker import run_pack
from geco_ray.ledger import Ledger
from geco_ray.runtime.lease import lease

BASE = BaseCell("breast_cancer", "f" * 8, 2026, "paper")
CELLS: list[Cell] = [VariantCell(BASE, "seed", number) for number in range(40)]
KILLS = 28
MANY = 140
SLOW_FLUSH = 0.004


def compute(cells: Sequence[Any], ledger: Ledger, context: WorkerContext) -> Iterator[tuple[Cell, Result]]:
    for cell in cells:
        yield cell, Result(pa.table({"x": [cell.variant * 1.5] * 2000}), bytes([cell.variant]) * 50_000)


@pytest.fixture(autouse=True)
def fake_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_load_work", lambda stage: None)
    monkeypatch.setattr(work, "_computations", {})
    work.computation("models", "variant")(compute)


def drive(root: str, said: Any) -> None:
    """A driver: takes the lease, computes what is left and says each cell once it is committed.

    Its disk is made slow, so that most of its time, and so most kills, fall within a write.
    """
    flush = os.fsync

    def slow_flush(handle: int) -> None:
        time.sleep(SLOW_FLUSH)
        flush(handle)

    os.fsync = slow_flush  # of this process alone: it was forked for this
    ledger = Ledger(root)
    with lease(ledger.storage):
        os.write(said, b"started\n")
        for cell in CELLS:
            for outcome in run_pack([cell], WorkerContext(root, device="cpu")):
                os.write(said, f"{outcome.cell_id}\n".encode())


def bytes_of(root: Path) -> dict[str, bytes | dict[str, Any]]:
    found: dict[str, bytes | dict[str, Any]] = {}
    for path in sorted((root / "cells").rglob("*")):
        if path.suffix == ".json":
            record = json.loads(path.read_bytes())
            found[path.name] = {key: item for key, item in record.items() if key not in ("info", "checksum")}
        elif path.is_file():
            found[path.name] = path.read_bytes()
    return found


def kill_after(root: Path, seconds: float) -> list[str]:
    """Start a driver, kill it ``seconds`` after it holds the lease, and give the ids it had said to be finished."""
    read, write = os.pipe()
    driver = multiprocessing.get_context("fork").Process(target=drive, args=(str(root), write))
    driver.start()
    os.close(write)
    with os.fdopen(read) as said:
        assert said.readline() == "started\n"
        time.sleep(seconds)
        assert driver.pid is not None
        os.kill(driver.pid, signal.SIGKILL)
        driver.join()
        return said.read().split()


def test_sigkill_at_random_instants_loses_nothing(tmp_path: Path) -> None:
    killed_at_random(tmp_path, KILLS, 0)


@pytest.mark.slow
def test_many_kills_lose_nothing(tmp_path: Path) -> None:
    for number in range(MANY // KILLS):
        (tmp_path / str(number)).mkdir()
        killed_at_random(tmp_path / str(number), KILLS, 1 + number)


def killed_at_random(tmp_path: Path, kills: int, seed: int) -> None:
    calm, root = tmp_path / "calm", tmp_path / "killed"
    started = time.monotonic()
    run_pack(CELLS, WorkerContext(str(calm), device="cpu"))
    pace = (time.monotonic() - started) / len(CELLS) + 4 * SLOW_FLUSH  # the driver's disk is slow, this one is not
    ledger, chance = Ledger(root), random.Random(seed)
    finished: dict[str, float] = {}
    interrupted = leftovers = 0
    for _ in range(kills):
        # About one cell each time, whatever this machine's pace, so that nearly all kills meet work to do.
        said = kill_after(root, chance.uniform(0, 2 * pace))
        assert not set(said) & set(finished)  # nothing that was finished was computed again
        records, damaged = ledger.scan("models")
        assert damaged == {}
        assert set(said) | set(finished) <= set(records)  # nothing that was said to be finished is lost
        for cell_id, record in records.items():
            stamp = (root / "cells" / "models" / f"{cell_id}.json").stat().st_mtime_ns
            assert finished.setdefault(cell_id, stamp) == stamp
            assert ledger.verify(record) is None
        interrupted += len(records) < len(CELLS)
        leftovers += any(path.name.startswith(".") for path in root.rglob("*"))
    assert interrupted >= kills * 5 // 7
    assert leftovers >= 1  # some kills fell within a write
    with lease(ledger.storage):
        run_pack(CELLS, WorkerContext(str(root), device="cpu"))
    assert bytes_of(root) == bytes_of(calm)
    assert not [path for path in root.rglob("*") if path.name.startswith(".") or path.name == "lease.json"]


def test_a_second_driver_waits_for_no_one_and_changes_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    with lease(ledger.storage):
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(LeaseError, match=f"process {os.getpid()} on"):
            drive(str(tmp_path), os.open(os.devnull, os.O_WRONLY))
        assert sorted(tmp_path.rglob("*")) == before


def test_workers_that_die_leave_no_lock_behind(tmp_path: Path) -> None:
    def hold(root: str, said: int) -> None:
        with Ledger(root).storage.exclusive("cells/models"):
            os.write(said, b"x")
            time.sleep(60)

    read, write = os.pipe()
    worker = multiprocessing.get_context("fork").Process(target=hold, args=(str(tmp_path), write))
    worker.start()
    assert os.read(read, 1) == b"x"
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    assert run_pack(CELLS[:1], WorkerContext(str(tmp_path), device="cpu"))[0].error is None
