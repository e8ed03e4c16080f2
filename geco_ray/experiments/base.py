"""How any cell is computed and committed, on whichever worker it lands.

A stage registers one of two things: a *computation* of a pack of cells (``train``, ``models``, ``counterfactuals``,
``score``), or a *subject* that a holder loads once and asks many times (``explain``: a classifier; ``validity``: the
changed models of one base model). An ordinary exception fails the cell it belongs to and nothing else; a storage error
ends the run, since every further cell would meet it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from geco_ray.cells import Cell
from geco_ray.device import resolve_device
from geco_ray.errors import StorageError, UserError
from geco_ray.ledger import DamagedCell, Ledger

if TYPE_CHECKING:
    import pyarrow as pa


def refuse_changed(kind: str, name: str, found: str, planned: str) -> None:
    """Refuse data or an encoder that is not what the cell's id says.

    Raises:
        UserError: the fingerprints differ.
    """
    if found != planned:
        raise UserError(
            f"the {kind} {name!r} has changed since the grid was planned, or is another one on this machine",
            found=found,
            expected=planned,
            remedy="Run the same command again",
        )


@dataclass(frozen=True)
class Workplace:
    """What a worker must know besides its cells. None of it changes a result.

    Attributes:
        root: the run folder. data_dir: where the user's data lies, None for the cache. device: as
            :func:`geco_ray.device.resolve_device` takes it. threads: CPU threads of this worker.
    """

    root: str
    data_dir: Path | None = None
    device: str = "auto"
    threads: int = 1


@dataclass(frozen=True)
class Result:
    """What a computation gives for one cell: rows, weights if any, and facts for the record (no identity)."""

    table: pa.Table
    blob: bytes | None = None
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of one cell: committed (``error`` is None) or failed."""

    cell_id: str
    title: str
    seconds: float
    error: str | None = None


Computation = Callable[[Sequence[Any], Ledger, Workplace], Iterator[tuple[Cell, Result]]]


class Subject(Protocol):
    """Something expensive to load that answers cells one after another."""

    def answer(self, cell: Any) -> Result:
        """Compute one cell."""


@dataclass(frozen=True)
class HeldStage:
    """A stage that runs on holders: ``key`` tells which subject a cell asks, ``load`` opens it."""

    key: Callable[[Any], str]
    load: Callable[[Any, Ledger, Workplace], Subject]


@dataclass(frozen=True)
class _Registered:
    compute: Computation
    whole: bool


_COMPUTATIONS: dict[tuple[str, str], _Registered] = {}
_HELD: dict[str, HeldStage] = {}


def computation(stage: str, kind: str = "", *, whole: bool = False) -> Callable[[Computation], Computation]:
    """Decorator: the function below computes packs of this stage.

    With ``whole`` it always gets the whole pack, also when some of its cells are done already: cells of one stack then
    come out with the same bytes whether or not a run was interrupted between them.
    """

    def add(function: Computation) -> Computation:
        _COMPUTATIONS[stage, kind] = _Registered(function, whole)
        return function

    return add


def held_stage(stage: str, held: HeldStage) -> None:
    """Register how a stage's subjects are loaded."""
    _HELD[stage] = held


def _load_stages() -> None:
    import geco_ray.experiments.cfe.work
    import geco_ray.experiments.geco.work  # noqa: F401


def find_held(stage: str) -> HeldStage:
    """How holders serve ``stage``."""
    _load_stages()
    return _HELD[stage]


def run_pack(pack: Sequence[Cell], place: Workplace) -> list[Outcome]:
    """Compute the cells of a pack that are not done, and commit each as soon as it is finished.

    An exception may have come from any of the cells that were still open, so each of them gets one try of its own:
    the one that is at fault fails, and the others are done.

    Raises:
        StorageError: the ledger cannot be written.
    """
    _load_stages()
    ledger = Ledger(place.root)
    waiting = {cell.id: cell for cell in pack if ledger.get(cell) is None}
    outcomes: list[Outcome] = []
    if not waiting:
        return outcomes
    error, seconds = _compute(pack, waiting, ledger, place, outcomes)
    if error is None:
        return outcomes
    if len(waiting) == 1:
        return [*outcomes, *(_fail(cell, error, ledger, seconds) for cell in waiting.values())]
    for cell in waiting.values():
        outcomes += run_pack((cell,), place)
    return outcomes


def _compute(
    pack: Sequence[Cell], waiting: dict[str, Cell], ledger: Ledger, place: Workplace, outcomes: list[Outcome]
) -> tuple[Exception | None, float]:
    """Commit what the stage's computation gives, taking it out of ``waiting``; what stopped it, and after how long."""
    first = next(iter(waiting.values()))
    started = time.monotonic()
    try:
        stage = _COMPUTATIONS[first.stage, first.KIND]
        done = {cell.id for cell in pack} - set(waiting)
        for cell, result in stage.compute(pack if stage.whole else list(waiting.values()), ledger, place):
            seconds = time.monotonic() - started
            if cell.id in done and stage.whole:
                continue
            if cell.id not in waiting:
                raise RuntimeError(f"the computation gave a cell that was not asked for, or one twice: {cell.title}")
            ledger.put(
                cell,
                result.table,
                blob=result.blob,
                info=result.info | {"seconds": round(seconds, 4), "device": place.device},
            )
            del waiting[cell.id]
            outcomes.append(Outcome(cell.id, cell.title, seconds))
            started = time.monotonic()
        if waiting:
            raise RuntimeError("the computation ended without a result for this cell")
    except StorageError:
        raise
    except Exception as error:
        return error, time.monotonic() - started
    return None, 0.0


def _facts(result: Result, seconds: float, place: Workplace) -> dict[str, Any]:
    return result.info | {"seconds": round(seconds, 4), "device": str(resolve_device(place.device))}


def _fail(cell: Cell, error: Exception, ledger: Ledger, seconds: float) -> Outcome:
    if isinstance(error, DamagedCell) and error.cell is not None:
        stage, damaged = error.cell
        ledger.quarantine(stage, [damaged])  # found only on reading; the next run repeats it and what hangs on it
    ledger.fail(cell, error)
    return Outcome(cell.id, cell.title, seconds, f"{type(error).__name__}: {error}")


class Holder:
    """Keeps one subject at a time on its device and answers cells about it; a cell of another subject replaces it."""

    def __init__(self, place: Workplace) -> None:
        from geco_ray.device import limit_threads

        limit_threads(place.threads)
        self._place = place
        self._ledger = Ledger(place.root)
        self._key: str | None = None
        self._subject: Subject | None = None

    def answer(self, cell: Cell) -> Outcome:
        """Compute and commit one cell; an exception fails this cell and drops the subject."""
        started = time.monotonic()
        if self._ledger.get(cell) is not None:
            return Outcome(cell.id, cell.title, 0.0)
        try:
            held = find_held(cell.stage)
            key = f"{cell.stage}:{held.key(cell)}"
            if self._subject is None or key != self._key:
                self.release()
                self._subject, self._key = held.load(cell, self._ledger, self._place), key
            result = self._subject.answer(cell)
            seconds = time.monotonic() - started
            self._ledger.put(
                cell,
                result.table,
                blob=result.blob,
                info=result.info | {"seconds": round(seconds, 4), "device": self._place.device},
            )
            return Outcome(cell.id, cell.title, seconds)
        except StorageError:
            raise
        except Exception as error:
            self.release()
            return _fail(cell, error, self._ledger, time.monotonic() - started)

    def release(self) -> None:
        """Drop the subject and give its GPU memory back."""
        self._subject = self._key = None
        if "torch" in sys.modules and (cuda := sys.modules["torch"].cuda).is_available():
            cuda.empty_cache()
