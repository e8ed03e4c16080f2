"""Stands in for the stages' computations in every process of a run (PYTHONPATH makes Python import this at its start).

The folder ``$GECO_RAY_FAKE`` tells what the stand-ins do and keeps what they did: ``acts.json`` maps a part of a cell's
title to ``raise``, ``die``, ``kill once``, ``lose gpu`` (once) or ``sleep S``; ``computed`` gets a line for each
attempt at a cell, ``visible`` one with the process and the GPUs that it sees, ``trials`` one for each Ray Tune run,
``configurations`` one for each trial that started.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import time
import types
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("GECO_RAY_FAKE", ""))


def note(file: str, line: str) -> None:
    with (FOLDER / file).open("a") as stream:
        stream.write(line + "\n")


def act(cell: Any) -> None:
    note("computed", f"{cell.id} {os.getpid()} {cell.title}")
    note("visible", f"{os.getpid()} {os.environ.get('CUDA_VISIBLE_DEVICES', 'all')}")
    for part, what in json.loads((FOLDER / "acts.json").read_text()).items():
        if part not in cell.title:
            continue
        if what == "raise":
            raise ValueError("told to raise")
        if what == "die":
            os._exit(1)
        if what == "kill once" and not (FOLDER / "killed").exists():
            note("killed", cell.id)
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "lose gpu" and not (FOLDER / "killed").exists():
            import torch

            note("killed", str(os.getpid()))
            raise torch.AcceleratorError("CUDA error: device-side assert triggered")
        if what.startswith("sleep"):
            time.sleep(float(what.split()[1]))


def wait_if_told() -> None:
    """Stands for the reading of the data, before the lease is taken."""
    note("checked", "")
    time.sleep(float(json.loads((FOLDER / "acts.json").read_text()).get("check inputs", 0)))


def patch_work(work: Any) -> None:
    import geco_ray.device

    def answer(cell: Any) -> Any:
        import pyarrow as pa

        act(cell)
        return work.Result(pa.table({"x": [cell.id]}))

    def compute(cells: Any, ledger: Any, context: Any) -> Any:
        for cell in cells:
            yield cell, answer(cell)

    class LoadedModel:
        def answer(self, cell: Any) -> Any:
            return answer(cell)

    def load(cell: Any, ledger: Any, context: Any) -> Any:
        note("loaded", work.served_stage(cell.stage).key(cell))
        return LoadedModel()

    for name in ("geco", "cfe"):
        stage = types.ModuleType(f"geco_ray.experiments.{name}.work")
        stage.check_inputs = lambda cells, data_dir: wait_if_told()  # type: ignore[attr-defined]
        sys.modules[stage.__name__] = stage
    geco_ray.device.limit_threads = lambda threads: None
    for stage_name, kind in (("train", ""), ("score", ""), ("models", "base"), ("models", "variant")):
        work.computation(stage_name, kind)(compute)
    work.computation("counterfactuals")(compute)
    work.serve_stage("explain", work.ServedStage(key=lambda cell: cell.model.id, load=load))
    work.serve_stage("validity", work.ServedStage(key=lambda cell: cell.counterfactuals.base.id, load=load))


def patch_trials(trials: Any) -> None:
    real = trials.run_trials

    def run_trials(*args: Any) -> int:
        count: int = real(*args)
        note("trials", str(count))
        return count

    trials.run_trials = run_trials
    make = trials._listener

    def listener() -> Any:
        heard = make()

        class Recorder(type(heard)):  # type: ignore[misc]
            def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
                note("configurations", json.dumps(trial.config))

        return Recorder()

    trials._listener = listener


class Patcher(MetaPathFinder):
    patches = {"geco_ray.experiments.base": patch_work, "geco_ray.runtime.trials": patch_trials}  # noqa: RUF012

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        patch = self.patches.pop(name, None)
        if patch is None:
            return None
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            patch(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if "GECO_RAY_FAKE" in os.environ:
    sys.meta_path.insert(0, Patcher())
    report = types.ModuleType("analysis.refresh")
    report.refresh_report = lambda *given: FOLDER  # type: ignore[attr-defined]
    sys.modules["analysis.refresh"] = report
