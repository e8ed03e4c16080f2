"""Single rows on the page: the data in it, what is left out, and that the page keeps its size."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from analysis.geco.rows.levels import ALPHABET, STEPS, encoded
from analysis.report import read_numbers, write_report
from analysis.rows.sampling import every_kth, ordinal, size_of
from geco_ray.cfe.data.cards import BUILT_IN
from geco_ray.cfe.data.units import Units


@pytest.fixture(scope="module")
def small(kit: Any) -> Any:
    """A ledger of both benchmarks, one of whose tables may not be shown."""
    ledger = kit.FakeLedger()
    kit.fill_geco(ledger, ("demo_binary_all",), ("BERT-C",), ("saliency", "input_x_gradient"), seeds=2, sentences=4)
    kit.fill_cfe(ledger, ("breast_cancer", "heloc"), ("kdtree", "wachter"), ("seed", "deletion"), (2026, 2027), 3, 4)
    return ledger


@pytest.fixture(scope="module")
def page(small: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    write_report(small, None, folder, "g")
    return (folder / "index.html").read_text("utf-8")


def data(page: str, kind: str) -> list[dict[str, Any]]:
    (found,) = re.findall(rf'<script type="application/json" id="rows-{kind}">(.*?)</script>', page)
    return list(json.loads(found))


def test_a_page_holds_every_sentence(page: str) -> None:
    (group,) = data(page, "sentences")
    assert "4 of 4 source sentences" in page
    assert [index for index, _ in group["sentences"]] == [0, 2, 4, 6]
    (form,) = group["sentences"][0][1]
    predicted, _, correct, mass, lines = form["m"][0]
    assert len(form["w"]) == len(lines[0]) - 1 == len(lines[1]) - 1  # "=" begins a line without signs
    assert len(mass) == len(group["methods"]) == 2
    assert (predicted, group["classes"][form["c"]], correct) == (0, "female", 1)


def test_a_page_holds_every_counterfactual_of_tables_that_may_be_shown(page: str) -> None:
    (group,) = data(page, "counterfactuals")
    assert group["title"].startswith("Breast Cancer")
    assert len(group["answers"]) == 2 * 2 * 4
    row, seed, _, status, _, distance, values, survival = group["answers"][0]
    assert (row, seed, status, values[1]) == (0, 2026, "found", None)  # the second feature has not changed
    assert distance > 0
    assert [asked for _, asked in survival] == [3, 3]
    assert "HELOC (protocol paper, seeding paper): not shown" in page


def test_without_rows_no_person_is_on_the_page(small: Any, tmp_path: Path) -> None:
    write_report(small, None, tmp_path, "g", read_numbers(small, person_rows=False))
    text = (tmp_path / "index.html").read_text("utf-8")
    assert 'id="rows-counterfactuals"' not in text
    assert "left out as asked (--no-rows)" in text
    assert 'id="rows-sentences"' in text


def test_only_tables_whose_terms_ask_for_it_are_hidden() -> None:
    assert {name for name, card in BUILT_IN.items() if not card.show_rows} == {
        name for name, card in BUILT_IN.items() if card.terms
    }


def test_units_survive_a_record() -> None:
    values = {"features": ["a"], "mean": [1.0], "scale": [2.0], "mad": [0.5], "show_rows": False}
    assert Units.from_record(values).record() == values


@pytest.mark.parametrize("room", [10, 100, 1000, 10_000])
def test_every_kth_row_is_the_smallest_step_that_fits(room: int) -> None:
    step, made = every_kth(list(range(1000)), list, room)
    assert made == list(range(0, 1000, step))
    assert size_of(made) <= room or len(made) == 1


def test_steps_are_said_in_words() -> None:
    assert [ordinal(step) for step in (1, 2, 4, 11, 21)] == [
        "every",
        "every second",
        "every 4th",
        "every 11th",
        "every 21st",
    ]


def test_an_attribution_is_a_character_a_word() -> None:
    zero = ALPHABET[STEPS]
    assert encoded([0.5, 0.0, -0.5]) == ALPHABET[-1] + zero + ALPHABET[0]
    assert encoded([0.0, 0.0]) == zero * 2
