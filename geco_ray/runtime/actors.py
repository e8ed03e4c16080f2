"""Ray actors that each keep one model (or one bank of models) on their device and answer cells about it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from geco_ray.cells import Cell
from geco_ray.errors import DeviceLostError
from geco_ray.experiments.base import WorkerContext, served_stage
from geco_ray.experiments.worker import ModelActor, Outcome
from geco_ray.ledger import Ledger
from geco_ray.plugins import with_plugins
from geco_ray.runtime.attempts import died_too_often, node_was_lost

Report = Callable[[Outcome], None]
Say = Callable[[str], None]
_CPU_SHARE = 0.001
_SAY_AFTER = 60.0  # seconds without an answer, of which none has an actor yet
_ATTEMPTS = 2  # a cell that ends its actor's process twice is taken for the cause and recorded as failed


class _Queue:
    """Cells waiting, by model: an actor goes on with the model it has, then takes the one with most cells left."""

    def __init__(self, cells: Sequence[Cell], key: Callable[[Any], str]) -> None:
        self._waiting: dict[str, deque[Cell]] = defaultdict(deque)
        self._key = key
        for cell in cells:
            self._waiting[key(cell)].append(cell)

    def take(self, loaded: str | None, elsewhere: set[str]) -> Cell | None:
        """The next cell for an actor that has loaded the model ``loaded``, while others have those ``elsewhere``."""
        if loaded is not None and self._waiting.get(loaded):
            return self._waiting[loaded].popleft()
        left = {key: cells for key, cells in self._waiting.items() if cells}
        if not left:
            return None
        free = {key: cells for key, cells in left.items() if key not in elsewhere} or left
        return free[max(free, key=lambda key: len(free[key]))].popleft()

    def put_back(self, cell: Cell) -> None:
        self._waiting[self._key(cell)].appendleft(cell)


@dataclass(frozen=True)
class Crew:
    """How many actors a stage gets, and what each takes.

    Attributes:
        count: of actors at most. gpus: of one actor, at most 1. cpus: of one actor; next to none, so that it can't
            starve a small machine, but not none, or Ray might put it on a cluster's head, which has no CPU on purpose.
    """

    count: int
    gpus: float = 0.0
    cpus: float = _CPU_SHARE


def run_on_actors(
    cells: Sequence[Cell], context: WorkerContext, crew: Crew, report: Report, say: Say = lambda text: None
) -> None:
    """Answer every cell on the actors of ``crew`` and report each outcome as it comes.

    One that dies is replaced; its cell is tried once more, then recorded as failed. One that finds no further cell
    ends at once, since another may be waiting for its GPU. All are gone when this returns.

    Args:
        say: told once for the stage when cells wait for a minute and no actor could start.
    """
    actors = _Actors(cells, context, crew, report, say)
    try:
        for number in range(min(crew.count, len(cells))):
            actors.give_work(number)
        while actors.running:
            actors.take_answer()
    finally:
        actors.dismiss()


class _Actors:
    """The actors of one wave: who has loaded what, who works on which cell, and which cells ended their actor."""

    def __init__(self, cells: Sequence[Cell], context: WorkerContext, crew: Crew, report: Report, say: Say) -> None:
        import ray

        self._stage = served_stage(cells[0].stage)
        self._queue = _Queue(cells, self._stage.key)
        self._make = ray.remote(num_cpus=crew.cpus, num_gpus=crew.gpus, max_restarts=0)(ModelActor)
        self._crew, self._say, self._seen_starting = crew, say, False
        self._context, self._report, self._ledger = context, report, Ledger(context.root)
        self._actors: dict[int, Any] = {}
        self._loaded: dict[int, str] = {}
        self._started: dict[int, Any] = {}  # a call that each answers as soon as it runs
        self._deaths: dict[str, int] = defaultdict(int)
        self.running: dict[Any, tuple[int, Cell]] = {}

    def give_work(self, number: int) -> None:
        """Hand actor ``number`` its next cell; it is made when it is first needed, and ended when there is none."""
        elsewhere = {key for actor, key in self._loaded.items() if actor != number}
        cell = self._queue.take(self._loaded.get(number), elsewhere)
        if cell is None:
            self._end(number)
            return
        if number not in self._actors:
            self._actors[number] = self._make.remote(self._context)
            self._started[number] = self._actors[number].__ray_ready__.remote()
        self._loaded[number] = self._stage.key(cell)
        self.running[self._actors[number].answer.remote(with_plugins(cell))] = (number, cell)

    def take_answer(self) -> None:
        """Wait for the next answer, report it, and give its actor the next cell."""
        import ray

        ready = self._next_ready()
        number, cell = self.running.pop(ready)
        try:
            self._report(ray.get(ready))
        except ray.exceptions.RayActorError as error:
            self._end(number)
            self._after_death(cell, error)
        except ray.exceptions.RayTaskError as error:
            if not isinstance(error.cause, DeviceLostError):
                raise error.cause if isinstance(error.cause, Exception) else error from None
            self._end(number)  # its process is of no more use
            self._after_death(cell, error.cause)
        self.give_work(number)

    def _next_ready(self) -> Any:
        """The next answer. That no actor can start is said once, since a cluster may never have what they wait for."""
        import ray

        while True:
            ready, _ = ray.wait(list(self.running), num_returns=1, timeout=None if self._seen_starting else _SAY_AFTER)
            if ready:
                self._seen_starting = True
                return ready[0]
            if not ray.wait(list(self._started.values()), num_returns=1, timeout=0)[0]:
                wanted = f"{self._crew.gpus:g} GPU" if self._crew.gpus else f"{self._crew.cpus:g} CPU"
                self._say(f"note: no actor has started yet, each waits for {wanted} that is free")
            self._seen_starting = True

    def _end(self, number: int) -> None:
        """End an actor, if it is there: it gives up what it has of a GPU."""
        import ray

        if number in self._actors:
            ray.kill(self._actors[number])
            del self._actors[number], self._loaded[number], self._started[number]

    def _after_death(self, cell: Cell, error: Exception) -> None:
        if self._ledger.get(cell) is not None:  # it died between the commit and the answer
            self._report(Outcome(cell.id, cell.title, 0.0))
            return
        self._deaths[cell.id] += not node_was_lost(error)
        if self._deaths[cell.id] < _ATTEMPTS:
            self._queue.put_back(cell)
            return
        lost = died_too_often(error, _ATTEMPTS)
        self._ledger.fail(cell, lost)
        self._report(Outcome(cell.id, cell.title, 0.0, str(lost)))

    def dismiss(self) -> None:
        """End all actors."""
        for number in list(self._actors):
            self._end(number)
