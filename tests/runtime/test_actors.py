"""Which cell a holder gets next: its own subject's first, so that a model is loaded once."""

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


def subject(cell: VariantCell) -> str:
    return cell.base.id


def serve(holders: int) -> list[list[str]]:
    """The subjects that each holder is asked about, all holders being equally fast."""
    queue = _Queue(CELLS, subject)
    asked: list[list[str]] = [[] for _ in range(holders)]
    while True:
        given = 0
        for number in range(holders):
            own = asked[number][-1] if asked[number] else None
            cell = queue.take(own, {other[-1] for other in asked if other and other is not asked[number]})
            if isinstance(cell, VariantCell):
                asked[number].append(subject(cell))
                given += 1
        if not given:
            return asked


def loads(asked: list[str]) -> int:
    return sum(1 for before, now in zip([None, *asked], asked, strict=False) if before != now)


def test_one_holder_loads_each_subject_once() -> None:
    (asked,) = serve(1)
    assert len(asked) == len(CELLS)
    assert loads(asked) == 4


def test_two_holders_share_the_subjects_without_loading_one_twice() -> None:
    both = serve(2)
    assert [loads(asked) for asked in both] == [2, 2]
    assert sum(len(asked) for asked in both) == len(CELLS)


def test_more_holders_than_subjects_help_with_what_is_left() -> None:
    asked = serve(6)
    assert sum((Counter(one) for one in asked), Counter()).total() == len(CELLS)
    assert all(asked)


def test_a_cell_put_back_is_the_next_of_its_subject() -> None:
    queue = _Queue(CELLS, subject)
    first = queue.take(None, set())
    assert first is not None
    queue.put_back(first)
    assert queue.take(subject(first), set()) is first  # type: ignore[arg-type]
