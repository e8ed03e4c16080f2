"""Shares of GPUs on Ray, which counts two that this machine need not have: nothing hangs, nobody sees another's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

from geco_ray.runtime.shares import workers_that_fit

HERE = Path(__file__).parent


def compute(folder: Path, *words: str, acts: str = "sleep 0.2", seconds: float = 200) -> dict[str, set[str]]:
    """Run logical_gpus.py with stand-ins for the computations; process to the GPUs that it saw."""
    (folder / "acts.json").write_text(json.dumps({"": acts}))
    temporary = Path(tempfile.mkdtemp(prefix="g"))  # short, for Ray's sockets
    env = {name: value for name, value in os.environ.items() if name not in ("RAY_ADDRESS", "CUDA_VISIBLE_DEVICES")}
    env |= {"GECO_RAY_FAKE": str(folder), "TMPDIR": str(temporary)}
    env["PYTHONPATH"] = os.pathsep.join([str(HERE / "fakes"), env.get("PYTHONPATH", "")])
    try:
        script = [sys.executable, str(HERE / "logical_gpus.py"), str(folder), *words]
        subprocess.run(script, env=env, check=True, timeout=seconds)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    seen: dict[str, set[str]] = defaultdict(set)
    for line in (folder / "visible").read_text().splitlines():
        process, gpus = line.split()
        seen[process].add(gpus)
    return seen


def test_a_worker_lies_on_one_gpu() -> None:
    fits = {share: workers_that_fit(share, 2) for share in (0.1, 0.25, 1 / 3, 0.3333, 0.5, 0.6, 1)}
    assert fits == {0.1: 20, 0.25: 8, 1 / 3: 6, 0.3333: 6, 0.5: 4, 0.6: 2, 1: 2}


@pytest.mark.parametrize("words", [("actors:3:0.6:8", "actors:4:1:8", "actors:5:0.5:5", "actors:3:1:2")])
def test_actors_that_outnumber_the_gpus_end_without_a_hang(tmp_path: Path, words: tuple[str, ...]) -> None:
    compute(tmp_path, *words)
    assert (tmp_path / "ended").read_text().split("\n")[:-1] == [f"{word} {word.split(':')[-1]}" for word in words]


def test_trials_and_actors_see_the_one_gpu_that_they_were_given(tmp_path: Path) -> None:
    seen = compute(tmp_path, "actors:2:1:4", "trials:2:1:4")
    assert {frozenset(gpus) for gpus in seen.values()} == {frozenset("0"), frozenset("1")}


@pytest.mark.parametrize("word", ["actors:1:1:3", "trials:1:1:3"])
def test_a_process_that_lost_its_gpu_computes_no_further_cell(tmp_path: Path, word: str) -> None:
    compute(tmp_path, word, acts="lose gpu")
    lost = (tmp_path / "killed").read_text().split()  # two trials may come to it at the same time
    attempts = [line.split()[1] for line in (tmp_path / "computed").read_text().splitlines()]
    assert len(attempts) == 3 + len(lost)
    assert [attempts.count(process) for process in lost] == [1] * len(lost)
    assert len(list((tmp_path / "cells").rglob("*.parquet"))) == 3
