"""Constraints of a card: what breaks one is counted, what a method says it keeps it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from geco_ray.cfe.constraints.declared import Constraints, honours
from geco_ray.cfe.data.cards import BUILT_IN, Card
from geco_ray.cfe.data.tabular import read_table
from geco_ray.cfe.generation import generate
from geco_ray.cfe.methods.base import METHODS, Answer, GenerationTask
from geco_ray.errors import UserError

NAMES = ("sex", "age", "debt", "rooms")
MEAN, SCALE = np.array([0.0, 40.0, 10.0, 2.0]), np.array([1.0, 10.0, 5.0, 1.0])

# Digests of the paper's data sets before constraints counted: cells and tables hang on them.
DIGESTS = {
    "breast_cancer": "e272a01d6b995fa98a4a1c53d91154a39c7dc57ac5757bb264f49d779a7744b8",
    "diabetes": "cf6ec663e52fe4c50c6bf172624d005d592d894e8a2b0e40ac623e803cea1290",
    "wine_quality": "a1c9bb36de774500a7323ba327555cb0364c2fff3d8e81c1dcb0be5e56c532ea",
    "heloc": "19fb79122d95d5a5ff20c200b903cc56c64986be88a921c76e8ecf3b83c01979",
}


def card(**keys: object) -> Card:
    return Card(name="loans", target="paid", favourable=("yes",), **keys)  # type: ignore[arg-type]


def declared(**keys: object) -> Constraints:
    found = Constraints.of(card(**keys), NAMES, MEAN, SCALE)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("keys", "point", "sentence"),
    [
        ({"immutable": ("sex",)}, [1.0, 40, 10, 2], "sex is immutable"),
        ({"only_rising": ("age",)}, [0.0, 39, 10, 2], "age may only rise"),
        ({"only_falling": ("debt",)}, [0.0, 40, 11, 2], "debt may only fall"),
        ({"ranges": {"debt": (0, 20)}}, [0.0, 40, 21, 2], "debt is outside 0 to 20"),
        ({"allowed": {"rooms": (1, 2, 3)}}, [0.0, 40, 10, 2.5], "rooms is no allowed value"),
    ],
)
def test_each_kind_is_seen_where_it_is_broken_and_only_there(
    keys: dict[str, object], point: list[float], sentence: str
) -> None:
    factual = (np.array([0.0, 40, 10, 2]) - MEAN) / SCALE
    points = (np.array([point, [0.0, 41, 9, 3]]) - MEAN) / SCALE
    broken = declared(**keys).broken(factual, points)
    assert {text: flags.tolist() for text, flags in broken.items()} == {sentence: [True, False]}
    assert declared(**keys).kept(factual, points).tolist() == [False, True]


def test_a_way_through_float32_breaks_nothing() -> None:
    stream = np.random.default_rng(0)
    rows = stream.normal(size=(500, 4)) * 50
    constraints = declared(immutable=("sex",), only_rising=("age",), only_falling=("debt",))
    assert constraints.kept(rows, rows.astype(np.float32).astype(np.float64)).all()


def test_data_without_constraints_are_named_as_before_and_others_by_them() -> None:
    assert {name: built_in.digest() for name, built_in in BUILT_IN.items()} == DIGESTS
    assert Constraints.of(BUILT_IN["diabetes"], ["Age"], MEAN[:1], SCALE[:1]) is None
    plain, immutable = card(), card(immutable=("sex",))
    assert plain.digest() != immutable.digest() != card(immutable=("age",)).digest()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"only_rising": ("age",), "only_falling": ("Age ", "age")},
            "may neither rise nor fall: write them under immutable",
        ),
        ({"allowed": {"rooms": ()}}, "no value of 'rooms' is allowed"),
    ],
)
def test_constraints_that_cannot_be_kept_are_refused(keys: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        card(**keys)


def test_a_value_of_the_table_that_is_not_allowed_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "loans.csv"
    path.write_text("rooms,paid\n1,yes\n7,no\n")
    with pytest.raises(
        UserError, match=r"loans.csv:3: column 'rooms', row 1 is not a value that the card allows .*7\.0.*1, 2"
    ):
        read_table(path, card(allowed={"rooms": (1, 2)}))
    with pytest.raises(UserError, match="lacks column 'age'"):
        read_table(path, card(only_rising=("age",)))


@pytest.fixture
def bound_task(toy_task: GenerationTask) -> GenerationTask:
    """The toy task with one feature that stays, one that may only rise, one in an interval."""
    names = ("a", "b", "c", "d")
    constraints = Constraints.of(
        card(immutable=("c",), only_rising=("b",), ranges={"a": (-3.0, 1.5)}), names, np.zeros(4), np.ones(4)
    )
    rows = toy_task.train_x.copy()
    rows[:, 2] = np.round(rows[:, 2])  # so that some training rows agree with a factual
    return replace(toy_task, train_x=rows, features=names, constraints=constraints)


@pytest.fixture
def bound_factuals(toy_factuals: np.ndarray) -> np.ndarray:
    rows = toy_factuals[:8].copy()
    rows[:, 2] = np.round(rows[:, 2])
    return rows


def honouring() -> list[str]:
    return [entry.name for entry in METHODS.entries() if getattr(entry.target, "honours", ())]


@pytest.mark.parametrize("name", honouring())
def test_a_method_keeps_what_it_says_it_keeps(
    name: str, bound_task: GenerationTask, bound_factuals: np.ndarray
) -> None:
    entry = METHODS.get(name)
    assert {"immutable", "one_way", "range"} <= set(entry.target.honours)  # type: ignore[attr-defined]
    options = {"trade_off": 0.01, "learning_rate": 0.1, "max_steps": 300} if name == "wachter" else {}
    prepared = entry.target(bound_task, entry.parse_options(options))
    ids = range(len(bound_factuals))
    table = generate(prepared, bound_task, bound_factuals, ids, ids)
    kept = [flag for flag in table["constraints_kept"].to_pylist() if flag is not None]
    assert kept
    assert all(kept)
    free = generate(
        entry.target(replace(bound_task, constraints=None), entry.parse_options(options)),
        bound_task,
        bound_factuals,
        ids,
        ids,
    )
    assert False in free["constraints_kept"].to_pylist()


def test_every_built_in_method_says_what_it_keeps() -> None:
    assert all(hasattr(entry.target, "honours") for entry in METHODS.entries() if entry.module.startswith("geco_ray."))
    with pytest.raises(ValueError, match="unknown kinds"):
        honours("imutable")


class Fixed:
    """Answers every request with one point, or with none."""

    def __init__(self, points: Sequence[np.ndarray | None]) -> None:
        self.points, self.set_up = points, {}

    def generate(self, factuals: np.ndarray, factual_ids: Sequence[int]) -> list[Answer]:
        return [Answer(self.points[i], "found" if self.points[i] is not None else "not_found") for i in factual_ids]


def test_what_breaks_a_constraint_is_counted_and_never_repaired(
    bound_task: GenerationTask, bound_factuals: np.ndarray
) -> None:
    good = bound_task.train_x[bound_task.model.favourable(bound_task.train_x)][0].astype(np.float64)
    good[2] += 0.5
    table = generate(Fixed([good, None]), bound_task, bound_factuals[:2], range(2), range(2))
    assert table["constraints_kept"].to_pylist() == [False, None]
    assert "c is immutable" in table["broken"].to_pylist()[0]
    assert table["counterfactual"].to_pylist()[0] == good.tolist()


def test_a_table_without_constraints_has_no_further_column(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    table = generate(Fixed([None]), toy_task, toy_factuals[:1], range(1), range(1))
    assert "constraints_kept" not in table.column_names
