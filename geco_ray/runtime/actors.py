"""Ray actors that each keep one model (or one bank of models) on their device and answer cells about it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from geco_ray.cells import Cell
from geco_ray.experiments.base import WorkerContext, served_stage
from geco_ray.experiments.worker import ModelActor, Outcome
from geco_ray.ledger import Ledger
from geco_ray.plugins import with_plugins
from geco_ray.runtime.attempts import died_too_often, node_was_lost

Report = Callable[[Outcome], None]
_CPU_SHARE = 0.001
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


def run_on_actors(cells: Sequence[Cell], context: WorkerContext, count: int, gpus: float, report: Report) -> None:
    """Answer every cell on ``count`` actors and report each outcome as it comes.

    One that dies is replaced; its cell is tried once more, then recorded as failed. All are gone when this returns.
    """
    crew = _Crew(cells, context, gpus, report)
    try:
        for number in range(min(count, len(cells))):
            crew.give_work(number)
        while crew.running:
            crew.take_answer()
    finally:
        crew.dismiss()


class _Crew:
    """The actors of one wave: who has loaded what, who works on which cell, and which cells ended their actor.

    An actor has next to no logical CPU, so that it can't starve a small machine; but not none, or Ray might put it on a
    cluster's head, which has no CPU for work on purpose. It has ``gpus`` of a GPU.
    """

    def __init__(self, cells: Sequence[Cell], context: WorkerContext, gpus: float, report: Report) -> None:
        import ray

        self._stage = served_stage(cells[0].stage)
        self._queue = _Queue(cells, self._stage.key)
        self._make = ray.remote(num_cpus=_CPU_SHARE, num_gpus=gpus, max_restarts=0)(ModelActor)
        self._context, self._report, self._ledger = context, report, Ledger(context.root)
        self._actors: dict[int, Any] = {}
        self._loaded: dict[int, str] = {}
        self._deaths: dict[str, int] = defaultdict(int)
        self.running: dict[Any, tuple[int, Cell]] = {}

    def give_work(self, number: int) -> None:
        """Hand actor ``number`` its next cell, if there is one; it is made when it is first needed."""
        elsewhere = {key for actor, key in self._loaded.items() if actor != number}
        cell = self._queue.take(self._loaded.get(number), elsewhere)
        if cell is None:
            return
        if number not in self._actors:
            self._actors[number] = self._make.remote(self._context)
        self._loaded[number] = self._stage.key(cell)
        self.running[self._actors[number].answer.remote(with_plugins(cell))] = (number, cell)

    def take_answer(self) -> None:
        """Wait for the next answer, report it, and give its actor the next cell."""
        import ray

        (ready,), _ = ray.wait(list(self.running), num_returns=1)
        number, cell = self.running.pop(ready)
        try:
            self._report(ray.get(ready))
        except ray.exceptions.RayActorError as error:
            del self._actors[number], self._loaded[number]
            self._after_death(cell, error)
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None
        self.give_work(number)

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
        import ray

        for actor in self._actors.values():
            ray.kill(actor)
