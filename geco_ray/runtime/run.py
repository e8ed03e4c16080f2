"""Running a plan: stage after stage, each on trials, actors or in the driver, until nothing is left."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from rich.console import Console
from rich.text import Text

from geco_ray.arithmetic import set_arithmetic
from geco_ray.cells import Cell
from geco_ray.errors import GecoRayError, LeaseError, RayDiedError
from geco_ray.experiments.base import WorkerContext
from geco_ray.ledger import Ledger
from geco_ray.plan.benchmark import Stage, benchmarks, load_named, stage_owners, stages
from geco_ray.plan.config import RunSettings
from geco_ray.plan.costs import expected_seconds, measured, shipped
from geco_ray.plan.expand import packs
from geco_ray.plan.remaining import Plan, make_plan
from geco_ray.runtime.executors import Executor, InlineExecutor, RayExecutor, Wave
from geco_ray.runtime.lease import give_back, lease, refuse_if_held
from geco_ray.runtime.progress import RunProgress
from geco_ray.runtime.session_folder import remove_folders
from geco_ray.runtime.shares import check_device, note_on_unusable_gpus


class Interrupted(GecoRayError):
    """The run was asked to stop, by Ctrl-C (exit code 130), SIGTERM (143) or SIGHUP (129)."""

    def __init__(self, number: int, left: int) -> None:
        super().__init__(
            f"stopped by {signal.Signals(number).name}, {left} cells are left. Finished cells are kept; the same "
            "command again does what is left."
        )
        self.exit_code = 128 + number


_STOPS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


class _Stop(KeyboardInterrupt):
    """What a signal raises: no Exception, or a computation would take it for the fault of the cell at work."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _waves(cells: Sequence[Cell]) -> Iterator[tuple[Stage, list[Cell]]]:
    """Cells in the order in which their upstream cells get done: base models before their variants."""
    for stage in stages().values():
        mine = [cell for cell in cells if cell.stage == stage.name]
        for kind in dict.fromkeys(cell.KIND for cell in mine):
            yield stage, [cell for cell in mine if kind == cell.KIND]


def _ignored_hang_up(number: signal.Signals) -> bool:
    return number.name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN


@contextlib.contextmanager
def _stop_on_signals(at_second: Callable[[int], None]) -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP raise :class:`_Stop` in the block; only the main thread gets signals.

    A SIGHUP that is ignored when we come, as under ``nohup``, stays ignored. A second signal would break the clearing
    up that the first has begun, so it does not raise but calls ``at_second``, which has to end the process.
    """

    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            at_second(number)
        raise _Stop(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in _STOPS if not _ignored_hang_up(number)]
    before = {number: signal.signal(number, stop) for number in numbers}
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
    owners = stage_owners()
    for benchmark in benchmarks():
        concerned = [cell for cell in cells if owners[cell.stage] is benchmark]
        if concerned and benchmark.check_inputs is not None:
            load_named(benchmark.check_inputs)(concerned, settings.data_dir)


def run_plan(plan: Plan, cells: list[Cell], settings: RunSettings, console: Console) -> Plan:
    """Compute what is left and return the plan as it stands afterwards.

    Raises:
        UserError: an input is missing or wrong; nothing has been written.
        LeaseError: another driver works on the folder. StorageError: the folder can't be written.
        ResourceError: no worker can ever have what is asked for. Interrupted, KeyboardInterrupt: stopped from outside.
    """
    set_arithmetic(settings.arithmetic)
    ledger = Ledger(settings.root)
    try:
        with _stop_on_signals(_end_at_once(ledger, console)):
            _check_and_run(plan, cells, settings, console, ledger)
    except KeyboardInterrupt as stopped:
        number = stopped.number if isinstance(stopped, _Stop) else signal.SIGINT
        raise Interrupted(number, make_plan(cells, ledger, settings.pack).left) from None
    return make_plan(cells, ledger, settings.pack)


def _check_and_run(plan: Plan, cells: list[Cell], settings: RunSettings, console: Console, ledger: Ledger) -> None:
    left = {cell.id for stage in plan.stages for cell in stage.left}
    waiting = [cell for cell in cells if cell.id in left]
    refuse_if_held(ledger.storage)
    check_device(settings)
    if (note := note_on_unusable_gpus(settings)) is not None:
        console.print(note, highlight=False, soft_wrap=True)
    check_inputs(waiting, settings)
    # One thread everywhere: sums in another order would give other bytes inline than on Ray, or on another machine.
    context = WorkerContext(
        ledger.root,
        settings.data_dir,
        settings.device,
        threads=1,
        checkpoints=settings.checkpoints,
        cell_seconds=settings.cell_seconds,
    )
    _run_waves(cells, settings, console, ledger, context)


def _end_at_once(ledger: Ledger, console: Console) -> Callable[[int], None]:
    """What a second signal does: end our Ray and its folders, give the run folder back, and end this process."""

    def end(number: int) -> None:
        try:
            remove_folders()
            ledger.storage.sweep()  # what the workers were writing when they were ended
            give_back(ledger.storage)
            console.print(f"stopped at once by a second {signal.Signals(number).name}. Finished cells are kept.")
        finally:
            os._exit(128 + number)

    return end


def _run_waves(
    cells: list[Cell], settings: RunSettings, console: Console, ledger: Ledger, context: WorkerContext
) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(lease(ledger.storage, _end_without_lease(console)))
        ledger.fix_layout(max(Counter(cell.stage for cell in cells).values()))
        plan = make_plan(cells, ledger, settings.pack)  # again: another driver may have worked here until now
        left = {cell.id for planned in plan.stages for cell in planned.left}
        for damaged_stage, damaged in plan.damaged().items():
            ledger.quarantine(damaged_stage, damaged)
        progress = stack.enter_context(
            RunProgress(len(left), console, quiet=settings.quiet, expected=_expected_seconds(plan))
        )
        executor: Executor
        if settings.executor == "inline":
            executor = InlineExecutor(context)
        else:
            executor = RayExecutor(settings, context, stack, console, _end_with_ray(cells, settings, ledger, console))
        finished = 0
        for stage, wave in _waves(cells):
            ready = _ready([cell for cell in wave if cell.id in left], ledger)
            if ready:
                wanted = {cell.id for cell in ready}
                touched = [pack for pack in packs(wave, settings.pack) if any(cell.id in wanted for cell in pack)]
                progress.stage(stage.name)
                executor.run(Wave(stage, ready, touched), progress)
                ledger.write_index(stage.name)
                finished += len(ready)
                progress.set_finished(finished)


def _expected_seconds(plan: Plan) -> dict[str, float]:
    """Id to what each cell that is left will take, by what is done here and what was measured for the package."""
    own = measured(record for planned in plan.stages for record in planned.records)
    return expected_seconds((cell for planned in plan.stages for cell in planned.left), own, shipped())


def _end_with_ray(cells: list[Cell], settings: RunSettings, ledger: Ledger, console: Console) -> Callable[[str], None]:
    """What is done when Ray itself dies: it is said, the lease is given back, and the process ends."""

    def end(reason: str) -> None:
        try:
            with contextlib.suppress(OSError):
                give_back(ledger.storage)
            what = f"Ray itself has ended ({reason})"
            with contextlib.suppress(GecoRayError, OSError):  # a folder that can't be read now must not keep us
                what += f", {make_plan(cells, ledger, settings.pack).left} cells are left"
            error = RayDiedError(f"{what}. Finished cells are kept; the same command again does what is left.")
            console.print(Text.assemble(("error:", "red"), f" {error}"), soft_wrap=True)
        finally:
            os._exit(RayDiedError.exit_code)  # the main thread waits in Ray's compiled parts and can't be reached

    return end


def _end_without_lease(console: Console) -> Callable[[LeaseError], None]:
    """What is done when another driver has taken the folder over: this one ends, with its Ray, and touches nothing."""

    def end(error: LeaseError) -> None:
        try:
            remove_folders()
            console.print(Text.assemble(("error:", "red"), f" {error}"), soft_wrap=True)
        finally:
            os._exit(LeaseError.exit_code)  # the main thread may be anywhere

    return end


def _ready(wave: Sequence[Cell], ledger: Ledger) -> list[Cell]:
    """The cells whose upstream cells are all done; the others stay left, since something they need has failed."""
    done: dict[str, set[str]] = {}
    for stage in {parent.stage for cell in wave for parent in cell.upstream()}:
        done[stage] = set(ledger.done(stage))
    return [cell for cell in wave if all(parent.id in done[parent.stage] for parent in cell.upstream())]
