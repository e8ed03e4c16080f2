"""Ray actors that each keep one model (or one bank of models) on their device and answer cells about it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from geco_ray.cells import Cell
from geco_ray.experiments.base import WorkerContext, served_stage
from geco_ray.experiments.worker import ModelActor, Outcome
from geco_ray.ledger import Ledger

Report = Callable[[Outcome], None]
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

    An actor has no logical CPU (so that it can't starve a small machine) and ``gpus`` of a GPU. One that dies is
    replaced; its cell is tried once more, then recorded as failed. All are gone when this returns.
    """
    import ray

    stage = served_stage(cells[0].stage)
    queue = _Queue(cells, stage.key)
    make = ray.remote(num_cpus=0, num_gpus=gpus, max_restarts=0)(ModelActor)
    actors: dict[int, Any] = {}
    loaded: dict[int, str] = {}
    running: dict[Any, tuple[int, Cell]] = {}
    deaths: dict[str, int] = defaultdict(int)
    ledger = Ledger(context.root)

    def give_work(number: int) -> None:
        elsewhere = {key for actor, key in loaded.items() if actor != number}
        cell = queue.take(loaded.get(number), elsewhere)
        if cell is None:
            return
        if number not in actors:
            actors[number] = make.remote(context)
        loaded[number] = stage.key(cell)
        running[actors[number].answer.remote(cell)] = (number, cell)

    try:
        for number in range(min(count, len(cells))):
            give_work(number)
        while running:
            (ready,), _ = ray.wait(list(running), num_returns=1)
            number, cell = running.pop(ready)
            try:
                report(ray.get(ready))
            except ray.exceptions.RayActorError as error:
                actors.pop(number), loaded.pop(number)
                deaths[cell.id] += 1
                if ledger.get(cell) is not None:  # it died between the commit and the answer
                    report(Outcome(cell.id, cell.title, 0.0))
                elif deaths[cell.id] < _ATTEMPTS:
                    queue.put_back(cell)
                else:
                    lost = RuntimeError(f"its worker died {_ATTEMPTS} times ({type(error).__name__})")
                    ledger.fail(cell, lost)
                    report(Outcome(cell.id, cell.title, 0.0, str(lost)))
            except ray.exceptions.RayTaskError as error:
                raise error.cause if isinstance(error.cause, Exception) else error from None
            give_work(number)
    finally:
        for actor in actors.values():
            ray.kill(actor)
