"""Running a plan: stage after stage, each on trials, holders or in the driver, until nothing is left."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Protocol

from rich.console import Console

from geco_ray.arithmetic import set_arithmetic
from geco_ray.cells import Cell
from geco_ray.errors import GecoRayError, ResourceError, UserError
from geco_ray.experiments.base import Holder, Workplace, run_pack
from geco_ray.ledger import Ledger
from geco_ray.plan.config import RunSettings
from geco_ray.plan.expand import STAGES, packs
from geco_ray.plan.remaining import HOLDER_STAGES, TRIAL_STAGES, Plan, make_plan
from geco_ray.runtime.lease import lease
from geco_ray.runtime.progress import RunProgress


class Interrupted(GecoRayError):
    """The run was asked to stop, by Ctrl-C (exit code 130) or SIGTERM (143)."""

    def __init__(self, number: int, left: int) -> None:
        super().__init__(
            f"stopped by {signal.Signals(number).name}, {left} cells are left. Finished cells are kept; the same "
            "command again does what is left."
        )
        self.exit_code = 128 + number


class _Stop(KeyboardInterrupt):
    """What a signal raises: no Exception, or a computation would take it for the fault of the cell at work."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Executor(Protocol):
    """Runs the cells of one wave; a pack of it may hold cells that are done already."""

    def run(self, stage: str, work: Wave, progress: RunProgress) -> None: ...


@dataclass(frozen=True)
class Wave:
    """The cells of one stage and kind that can be computed now, and the packs they belong to."""

    ready: Sequence[Cell]
    packs: Sequence[tuple[Cell, ...]]


def place_for(stage: str, place: Workplace) -> Workplace:
    """Where a stage computes, whatever the executor: ``auto`` leaves the small networks on CPUs, where they are fast.

    One device per stage and not per executor, since a cell's id does not know where it was computed.
    """
    on_cpus = place.device == "auto" and stage in ("models", "counterfactuals")
    return replace(place, device="cpu") if on_cpus else place


@dataclass
class InlineExecutor:
    """Everything in this process, one cell after another: for tests, debugging and single cells."""

    place: Workplace

    def run(self, stage: str, work: Wave, progress: RunProgress) -> None:
        from geco_ray.device import limit_threads

        limit_threads(self.place.threads)
        place = place_for(stage, self.place)
        if stage in HOLDER_STAGES:
            holder = Holder(place)
            for cell in work.ready:
                progress.report(holder.answer(cell))
            holder.release()
            return
        for pack in work.packs:
            for outcome in run_pack(pack, place):
                progress.report(outcome)


class RayExecutor:
    """Trials and holders on Ray, which starts with the first stage that needs it and ends with the run."""

    def __init__(self, settings: RunSettings, place: Workplace, stack: contextlib.ExitStack, console: Console) -> None:
        self._settings, self._place, self._stack, self._console = settings, place, stack, console
        self._started = False

    def run(self, stage: str, work: Wave, progress: RunProgress) -> None:
        if stage not in TRIAL_STAGES and stage not in HOLDER_STAGES:
            InlineExecutor(self._place).run(stage, work, progress)
            return
        if not self._started:
            from geco_ray.runtime.session import ray_session

            self._stack.enter_context(ray_session(self._settings))
            self._started = True
            self._warn_of_a_folder_that_others_may_not_see()
        if stage in TRIAL_STAGES:
            from geco_ray.runtime.trials import run_trials

            gpus = self._gpus(stage, self._settings.gpus_per_trial)
            run_trials(work.packs, self._place_with(stage, gpus), gpus, progress.report)
        else:
            from geco_ray.runtime.actors import run_held

            gpus = self._gpus(stage, self._settings.gpus_per_actor)
            run_held(work.ready, self._place_with(stage, gpus), self._holder_count(gpus), gpus, progress.report)

    def _warn_of_a_folder_that_others_may_not_see(self) -> None:
        if (self._settings.address or os.environ.get("RAY_ADDRESS")) and "://" not in self._place.root:
            self._console.print(
                f"note: every node of the cluster must see {self._place.root} as its own; else give --root s3://BUCKET/PATH",
                highlight=False,
                soft_wrap=True,
            )

    def _available(self, resource: str) -> float:
        import ray

        return float(ray.cluster_resources().get(resource, 0.0))  # asked anew: a cluster grows between stages

    def _gpus(self, stage: str, asked: float | None) -> float:
        """GPUs of one worker of a stage: none where it computes on CPUs, else what is asked for, else a whole one."""
        device = place_for(stage, self._place).device
        if device == "cpu":
            return 0.0
        available = self._available("GPU")
        if asked is None:
            return 1.0 if available >= 1 or device.startswith("cuda") else 0.0
        grows = bool(self._settings.address or os.environ.get("RAY_ADDRESS"))  # an autoscaler starts GPUs when asked
        if asked > available and not grows:
            raise ResourceError(
                f"{asked:g} GPU per worker is asked for and the cluster has {available:g}. Give 0 for CPUs."
            )
        return asked

    def _place_with(self, stage: str, gpus: float) -> Workplace:
        """Without a GPU of its own, a worker must not take one that it happens to see."""
        place = place_for(stage, self._place)
        return replace(place, device="cpu") if gpus == 0 and place.device == "auto" else place

    def _holder_count(self, gpus: float) -> int:
        present = int(self._available("GPU") / gpus) if gpus else int(self._available("CPU"))
        if self._settings.actors is None:
            return max(1, present)
        return self._settings.actors if not gpus or present == 0 else min(self._settings.actors, present)


def _waves(cells: Sequence[Cell]) -> Iterator[tuple[str, list[Cell]]]:
    """Cells in the order in which their upstream cells get done: base models before their variants."""
    for stage in STAGES:
        for kind in dict.fromkeys(cell.KIND for cell in cells if cell.stage == stage):
            yield stage, [cell for cell in cells if cell.stage == stage and kind == cell.KIND]


@contextlib.contextmanager
def _stop_on_signals() -> Iterator[None]:
    """Let SIGINT and SIGTERM raise :class:`_Stop` in the block; a thread other than the main one gets no signals."""

    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        raise _Stop(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except BaseException:  # Ray's compiled parts may turn ours into another
        if received:
            raise _Stop(received[-1]) from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check_inputs(cells: Sequence[Cell], settings: RunSettings) -> None:
    """Open what the cells need (data with checksums, encoders) before anything is written.

    Raises:
        UserError: a file or encoder is missing or wrong, with the remedy.
    """
    from geco_ray.experiments.cfe.work import check_cfe_inputs
    from geco_ray.experiments.geco.work import check_geco_inputs

    check_geco_inputs(cells, settings.data_dir)
    check_cfe_inputs(cells, settings.data_dir)


def check_device(settings: RunSettings) -> None:
    """Refuse what this machine can never give, before Ray waits for it; a cluster may still grow, so it may not.

    Raises:
        UserError: no such device. ResourceError: more GPUs are asked for than there are.
    """
    from geco_ray.device import parse_device, resolve_device

    parse_device(settings.device)
    if settings.executor == "ray" and ":" in settings.device:
        raise UserError(
            "Ray shares out the GPUs itself", where="--device", found=settings.device, expected="auto, cpu or cuda",
            remedy="Choose GPUs with CUDA_VISIBLE_DEVICES, or use --executor inline",
        )  # fmt: skip
    if settings.executor == "ray" and (settings.address or os.environ.get("RAY_ADDRESS")):
        return
    if settings.gpus and settings.gpus > (present := _present_gpus()):
        raise ResourceError(
            f"--gpus asks for {settings.gpus:g} and this machine has {present}. Give as many, or 0 for CPUs."
        )
    if settings.device.startswith("cuda"):
        resolve_device(settings.device)
    for option, asked in (("trial", settings.gpus_per_trial), ("actor", settings.gpus_per_actor)):
        if settings.executor == "ray" and asked and asked > (available := _local_gpus(settings)):
            raise ResourceError(
                f"--gpus-per-{option} asks for {asked:g} GPU and this machine has {available:g}. Give 0 for CPUs."
            )


def _local_gpus(settings: RunSettings) -> float:
    return _present_gpus() if settings.gpus is None else settings.gpus


def _present_gpus() -> int:
    import torch

    return torch.cuda.device_count()


def run_plan(plan: Plan, cells: list[Cell], settings: RunSettings, console: Console) -> Plan:
    """Compute what is left and return the plan as it stands afterwards.

    Raises:
        UserError: an input is missing or wrong; nothing has been written.
        LeaseError: another driver works on the folder. StorageError: the folder can't be written.
        ResourceError: no worker can ever have what is asked for. Interrupted, KeyboardInterrupt: stopped from outside.
    """
    set_arithmetic(settings.arithmetic)
    left = {cell.id for stage in plan.stages for cell in stage.left}
    waiting = [cell for cell in cells if cell.id in left]
    check_device(settings)
    check_inputs(waiting, settings)
    ledger = Ledger(settings.root)
    # One thread everywhere: sums in another order would give other bytes inline than on Ray, or on another machine.
    place = Workplace(ledger.root, settings.data_dir, settings.device, threads=1)
    try:
        _run_waves(cells, settings, console, ledger, place)
    except KeyboardInterrupt as stopped:
        number = stopped.number if isinstance(stopped, _Stop) else signal.SIGINT
        raise Interrupted(number, make_plan(cells, ledger, settings.pack).left) from None
    return make_plan(cells, ledger, settings.pack)


def _run_waves(cells: list[Cell], settings: RunSettings, console: Console, ledger: Ledger, place: Workplace) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(_stop_on_signals())
        stack.enter_context(lease(ledger.storage))
        plan = make_plan(cells, ledger, settings.pack)  # anew: another driver may have worked here until now
        left = {cell.id for planned in plan.stages for cell in planned.left}
        for stage, damaged in plan.damaged().items():
            ledger.quarantine(stage, damaged)
        progress = stack.enter_context(RunProgress(len(left), console, quiet=settings.quiet))
        executor: Executor
        if settings.executor == "inline":
            executor = InlineExecutor(place)
        else:
            executor = RayExecutor(settings, place, stack, console)
        settled = 0
        for stage, wave in _waves(cells):
            ready = _ready([cell for cell in wave if cell.id in left], ledger)
            if ready:
                wanted = {cell.id for cell in ready}
                touched = [pack for pack in packs(wave, settings.pack) if any(cell.id in wanted for cell in pack)]
                progress.stage(stage)
                executor.run(stage, Wave(ready, touched), progress)
                settled += len(ready)
                progress.settle(settled)


def _ready(wave: Sequence[Cell], ledger: Ledger) -> list[Cell]:
    """The cells whose upstream cells are all done; the others stay left, since something they need has failed."""
    done: dict[str, set[str]] = {}
    for stage in {parent.stage for cell in wave for parent in cell.upstream()}:
        done[stage] = set(ledger.done(stage))
    return [cell for cell in wave if all(parent.id in done[parent.stage] for parent in cell.upstream())]
