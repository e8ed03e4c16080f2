"""Which cell an actor gets next: one of the model it has, so that a model is loaded once."""

from __future__ import annotations

from collections import Counter

from geco_ray.cells import Cell
from geco_ray.experiments.cfe.cells import BaseCell, VariantCell
from geco_ray.runtime.actors import _Queue

CELLS: list[Cell] = [
    VariantCell(BaseCell("breast_cancer", "f" * 8, seed, "paper"), "seed", number)
    for number in range(6)
    for seed in range(4)
]


def model(cell: VariantCell) -> str:
    return cell.base.id


def serve(actors: int) -> list[list[str]]:
    """The models that each actor is asked about, all actors being equally fast."""
    queue = _Queue(CELLS, model)
    asked: list[list[str]] = [[] for _ in range(actors)]
    while True:
        given = 0
        for number in range(actors):
            own = asked[number][-1] if asked[number] else None
            cell = queue.take(own, {other[-1] for other in asked if other and other is not asked[number]})
            if isinstance(cell, VariantCell):
                asked[number].append(model(cell))
                given += 1
        if not given:
            return asked


def loads(asked: list[str]) -> int:
    return sum(1 for before, now in zip([None, *asked], asked, strict=False) if before != now)


def test_one_actor_loads_each_model_once() -> None:
    (asked,) = serve(1)
    assert len(asked) == len(CELLS)
    assert loads(asked) == 4


def test_two_actors_share_the_models_without_loading_one_twice() -> None:
    both = serve(2)
    assert [loads(asked) for asked in both] == [2, 2]
    assert sum(len(asked) for asked in both) == len(CELLS)


def test_more_actors_than_models_help_with_what_is_left() -> None:
    asked = serve(6)
    assert sum((Counter(one) for one in asked), Counter()).total() == len(CELLS)
    assert all(asked)


def test_a_cell_put_back_is_the_next_of_its_model() -> None:
    queue = _Queue(CELLS, model)
    first = queue.take(None, set())
    assert first is not None
    queue.put_back(first)
    assert queue.take(model(first), set()) is first  # type: ignore[arg-type]
