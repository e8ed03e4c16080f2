"""Running a plan: stage after stage, each on trials, holders or in the driver, until nothing is left."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Protocol

from rich.console import Console

from geco_ray.cells import Cell
from geco_ray.config import RunSettings
from geco_ray.errors import GecoRayError, ResourceError
from geco_ray.expand import STAGES, packs
from geco_ray.ledger import Ledger
from geco_ray.plan import HOLDER_STAGES, TRIAL_STAGES, Plan, make_plan
from geco_ray.runtime.lease import lease
from geco_ray.runtime.progress import RunProgress
from geco_ray.work.base import Holder, Workplace, run_pack


class Interrupted(GecoRayError):
    """The run was asked to stop (SIGTERM)."""

    exit_code = 143


class Executor(Protocol):
    """Runs the cells of one wave; a pack of it may hold cells that are done already."""

    def run(self, stage: str, work: Wave, progress: RunProgress) -> None: ...


@dataclass(frozen=True)
class Wave:
    """The cells of one stage and kind that can be computed now, and the packs they belong to."""

    ready: Sequence[Cell]
    packs: Sequence[tuple[Cell, ...]]


@dataclass
class InlineExecutor:
    """Everything in this process, one cell after another: for tests, debugging and single cells."""

    place: Workplace

    def run(self, stage: str, work: Wave, progress: RunProgress) -> None:
        from geco_ray.device import limit_threads

        limit_threads(self.place.threads)
        if stage in HOLDER_STAGES:
            holder = Holder(self.place)
            for cell in work.ready:
                progress.report(holder.answer(cell))
            holder.release()
            return
        for pack in work.packs:
            for outcome in run_pack(pack, self.place):
                progress.report(outcome)


class RayExecutor:
    """Trials and holders on Ray, which starts with the first stage that needs it and ends with the run."""

    def __init__(self, settings: RunSettings, place: Workplace, stack: contextlib.ExitStack) -> None:
        self._settings, self._place, self._stack = settings, place, stack
        self._resources: dict[str, float] | None = None

    def run(self, stage: str, work: Wave, progress: RunProgress) -> None:
        if stage not in TRIAL_STAGES and stage not in HOLDER_STAGES:
            InlineExecutor(self._place).run(stage, work, progress)
            return
        if self._resources is None:
            from geco_ray.runtime.session import ray_session

            self._resources = self._stack.enter_context(ray_session(self._settings))
        if stage in TRIAL_STAGES:
            from geco_ray.runtime.trials import run_trials

            gpus = self._gpus(self._settings.gpus_per_trial)
            run_trials(work.packs, self._place, gpus, progress.report)
        else:
            from geco_ray.runtime.holders import run_held

            gpus = self._gpus(self._settings.gpus_per_actor)
            run_held(work.ready, self._place, self._holder_count(gpus), gpus, progress.report)

    def _gpus(self, asked: float | None) -> float:
        available = (self._resources or {}).get("GPU", 0.0)
        if asked is None:
            return 1.0 if available >= 1 and self._settings.device != "cpu" else 0.0
        if asked > available:
            raise ResourceError(
                f"{asked:g} GPU per worker is asked for and the cluster has {available:g}. Give 0 for CPUs."
            )
        return asked

    def _holder_count(self, gpus: float) -> int:
        resources = self._resources or {}
        most = int(resources.get("GPU", 0) / gpus) if gpus else int(resources.get("CPU", 1))
        return max(1, min(self._settings.actors or most, most if gpus else max(most, self._settings.actors or 1)))


def _waves(cells: Sequence[Cell]) -> Iterator[tuple[str, list[Cell]]]:
    """Cells in the order in which their upstream cells get done: base models before their variants."""
    for stage in STAGES:
        for kind in dict.fromkeys(cell.KIND for cell in cells if cell.stage == stage):
            yield stage, [cell for cell in cells if cell.stage == stage and kind == cell.KIND]


@contextlib.contextmanager
def _stop_on_sigterm() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Interrupted("Stopped by SIGTERM. Finished cells are kept; run the same command again to go on.")

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def check_inputs(cells: Sequence[Cell], settings: RunSettings) -> None:
    """Open what the cells need (data with checksums, encoders) before anything is written.

    Raises:
        UserError: a file or encoder is missing or wrong, with the remedy.
    """
    from geco_ray.work.cfe import check_cfe_inputs
    from geco_ray.work.geco import check_geco_inputs

    check_geco_inputs(cells, settings.data_dir)
    check_cfe_inputs(cells, settings.data_dir)


def run_plan(plan: Plan, cells: list[Cell], settings: RunSettings, console: Console) -> Plan:
    """Compute what is left and return the plan as it stands afterwards.

    Raises:
        UserError: an input is missing or wrong; nothing has been written.
        LeaseError: another driver works on the folder. StorageError: the folder can't be written.
        ResourceError: no worker can ever have what is asked for. Interrupted, KeyboardInterrupt: stopped from outside.
    """
    left = {cell.id for stage in plan.stages for cell in stage.left}
    waiting = [cell for cell in cells if cell.id in left]
    check_inputs(waiting, settings)
    ledger = Ledger(settings.root)
    threads = 1 if settings.executor == "ray" else settings.cpus or os.cpu_count() or 1
    place = Workplace(ledger.root, settings.data_dir, settings.device, threads)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_stop_on_sigterm())
        stack.enter_context(lease(ledger.storage))
        for stage, damaged in plan.damaged().items():
            ledger.quarantine(stage, damaged)
        progress = stack.enter_context(RunProgress(len(waiting), console, quiet=settings.quiet))
        executor: Executor
        if settings.executor == "inline":
            executor = InlineExecutor(place)
        else:
            executor = RayExecutor(settings, place, stack)
        for stage, wave in _waves(cells):
            ready = _ready([cell for cell in wave if cell.id in left], ledger)
            if ready:
                wanted = {cell.id for cell in ready}
                touched = [pack for pack in packs(wave, settings.pack) if any(cell.id in wanted for cell in pack)]
                progress.stage(stage)
                executor.run(stage, Wave(ready, touched), progress)
    return make_plan(cells, ledger, settings.pack)


def _ready(wave: Sequence[Cell], ledger: Ledger) -> list[Cell]:
    """The cells whose upstream cells are all done; the others stay left, since something they need has failed."""
    done: dict[str, set[str]] = {}
    for stage in {parent.stage for cell in wave for parent in cell.upstream()}:
        done[stage] = set(ledger.done(stage))
    return [cell for cell in wave if all(parent.id in done[parent.stage] for parent in cell.upstream())]
