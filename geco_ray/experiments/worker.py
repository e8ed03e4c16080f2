"""How any cell is computed and committed, on whichever worker it lands. Nothing here knows Ray.

An ordinary exception fails the cell it belongs to and nothing else; a storage error ends the run, since every further
cell would meet it.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from geco_ray.cells import Cell
from geco_ray.device import device_facts, lost_device, release_memory, resolve_device
from geco_ray.errors import DeviceLostError, LeaseError, StorageError
from geco_ray.experiments.base import LoadedModel, Result, WorkerContext, computation_of, partial_work, served_stage
from geco_ray.experiments.time_limit import CellTimeLimitError, each_within, time_limit
from geco_ray.ledger import DamagedCell, Ledger


@dataclass(frozen=True)
class Outcome:
    """How one cell ended: committed (``error`` is None) or failed."""

    cell_id: str
    title: str
    seconds: float
    error: str | None = None


def run_pack(pack: Sequence[Cell], context: WorkerContext) -> list[Outcome]:
    """Compute the cells of a pack that are not done, and commit each as soon as it is finished.

    An exception may have come from any of the cells that were still open, so each of them gets one try of its own:
    the one that is at fault fails, and the others are done.

    Raises:
        StorageError: the ledger cannot be written. LeaseError: the run folder is another driver's now.
        DeviceLostError: this process can't use its GPU any more, so that no cell may be blamed yet.
    """
    ledger = Ledger(context.root)
    waiting = {cell.id: cell for cell in pack if ledger.get(cell) is None}
    outcomes: list[Outcome] = []
    if not waiting:
        return outcomes
    error, seconds = _compute(pack, waiting, ledger, context, outcomes)
    if error is None:
        return outcomes
    if lost_device(error):
        raise _lost(error) from error
    if len(waiting) == 1:
        return [*outcomes, *(_fail(cell, error, ledger, seconds) for cell in waiting.values())]
    for cell in waiting.values():
        outcomes += run_pack((cell,), context)
    return outcomes


def _compute(
    pack: Sequence[Cell], waiting: dict[str, Cell], ledger: Ledger, context: WorkerContext, outcomes: list[Outcome]
) -> tuple[BaseException | None, float]:
    """Commit what the stage's computation gives, taking it out of ``waiting``; what stopped it, and after how long."""
    first = next(iter(waiting.values()))
    clock = _Clock()
    try:
        stage = computation_of(first)
        done = {cell.id for cell in pack} - set(waiting)
        cells = pack if stage.recompute_pack else list(waiting.values())
        limit = None if context.cell_seconds is None else context.cell_seconds * len(cells)  # they may come at once
        for cell, result in each_within(stage.compute(cells, ledger, context), limit):
            if cell.id in done and stage.recompute_pack:
                clock = _Clock()
                continue
            if cell.id not in waiting:
                raise RuntimeError(f"the computation gave a cell that was not requested, or one twice: {cell.title}")
            seconds = _commit(cell, result, ledger, clock, context)
            del waiting[cell.id]
            outcomes.append(Outcome(cell.id, cell.title, seconds))
            clock = _Clock()
        if waiting:
            raise RuntimeError("the computation ended without a result for this cell")
    except (StorageError, LeaseError):
        raise
    except (Exception, CellTimeLimitError) as error:
        return error, clock.seconds()
    return None, 0.0


class _Clock:
    """Time since it was made: of the clock, and of this process' CPU, which a busy machine does not stretch."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.process_time()

    def seconds(self) -> float:
        return time.monotonic() - self._wall

    def facts(self) -> dict[str, float]:
        return {"seconds": round(self.seconds(), 4), "cpu_seconds": round(time.process_time() - self._cpu, 4)}


def _commit(cell: Cell, result: Result, ledger: Ledger, clock: _Clock, context: WorkerContext) -> float:
    """Commit a cell; how long it took."""
    facts: dict[str, Any] = clock.facts() | _device_facts(context.device)
    ledger.put(cell, result.table, blob=result.blob, info=result.info | facts)
    if (partial := partial_work(cell, ledger, context)) is not None:
        partial.remove()
    return float(facts["seconds"])


def _device_facts(name: str) -> dict[str, str]:
    """What a record says of the device that ``name`` stands for in this process."""
    return {"device": name} if name == "cpu" else device_facts(resolve_device(name))  # cpu is known without torch


def _lost(error: BaseException) -> DeviceLostError:
    words = " ".join(str(error).partition("\n")[0].split())
    return DeviceLostError(
        f"this process can't use its GPU any more ({type(error).__name__}: {words}). Finished cells are kept; the same "
        "command again does what is left."
    )


def _fail(cell: Cell, error: BaseException, ledger: Ledger, seconds: float) -> Outcome:
    if isinstance(error, DamagedCell) and error.cell is not None:
        stage, damaged = error.cell
        ledger.quarantine(stage, [damaged])  # found only on reading; the next run repeats it and what hangs on it
    ledger.fail(cell, error)
    return Outcome(cell.id, cell.title, seconds, f"{type(error).__name__}: {error}")


class ModelActor:
    """Keeps one loaded model at a time on its device and answers cells about it; a cell of another one replaces it."""

    def __init__(self, context: WorkerContext) -> None:
        from geco_ray.device import limit_memory, limit_threads

        limit_threads(context.threads)
        limit_memory(context.gpu_share)
        self._context = context
        self._ledger = Ledger(context.root)
        self._key: str | None = None
        self._model: LoadedModel | None = None

    def answer(self, cell: Cell) -> Outcome:
        """Compute and commit one cell; an exception fails this cell and drops the model.

        Raises:
            StorageError, LeaseError, DeviceLostError: see :func:`run_pack`.
        """
        clock = _Clock()
        if self._ledger.get(cell) is not None:
            return Outcome(cell.id, cell.title, 0.0)
        try:
            served = served_stage(cell.stage)
            key = f"{cell.stage}:{served.key(cell)}"
            if self._model is None or key != self._key:
                self.release()
                self._model, self._key = served.load(cell, self._ledger, self._context), key
            with time_limit(self._context.cell_seconds):  # loading is not one cell's
                result = self._model.answer(cell)
            return Outcome(cell.id, cell.title, _commit(cell, result, self._ledger, clock, self._context))
        except (StorageError, LeaseError):
            raise
        except (Exception, CellTimeLimitError) as error:
            if lost_device(error):
                raise _lost(error) from error
            traceback.clear_frames(error.__traceback__)  # they hold arrays of the failed computation
            self.release()
            return _fail(cell, error, self._ledger, clock.seconds())

    def release(self) -> None:
        """Drop the model and give its GPU memory back."""
        self._model = self._key = None
        release_memory()
