"""Co-occurrence bias: sentences counted by hand, and the published values in every reading."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from geco_ray.errors import UserError
from geco_ray.geco.audit.audit import Split
from geco_ray.geco.audit.bias import READINGS, Terms, bias_of_splits, bias_of_tasks, count_cooccurrences
from geco_ray.geco.rows import Row

LABELS = ("female", "male", "neutral")


def row(text: str, gender: str) -> Row:
    words = tuple(text.split(" "))
    return Row(words, (0,) * len(words), gender, LABELS.index(gender), 0, 1)


@pytest.mark.parametrize(
    ("reading", "text", "gender", "count"),
    [
        ("paper", "She sees the dog .", "female", 4),  # one group; the full stop is left out
        ("paper", "She sees her dog , and her cat .", "female", 14),  # two groups times seven words
        ("paper", "He lost him and his hat .", "male", 12),  # him and his are one group; two groups, six words
        ("paper", "They lost them and their hat .", "neutral", 12),
        ("paper", "He sees the dog .", "female", 0),  # the terms of another class count nothing
        ("paper", "Herself alone .", "female", 0),
        ("paper", "She  sees .", "female", 3),  # a blank word is a word
        ("paper", "She sees\u00a0 .", "female", 2),
        ("paper-V", "She sees her dog , and her cat .", "female", 8),  # sees dog and cat, twice
        ("paper-V", "She sees him .", "female", 1),  # the terms of the other classes are left out as well
        ("paper-V", "She sees himself .", "female", 2),  # himself stands in no group
        ("literal", "She sees the dog .", "female", 4),  # one term times sees the dog .
        ("literal", "She sees her dog and the dog .", "female", 10),  # two terms times sees dog and the .
        ("literal", "She sees him .", "female", 4),  # a term of any class counts
        ("literal", "Herself alone .", "female", 2),
        ("literal", "Nobody came .", "female", 0),
    ],
)
def test_one_sentence_by_hand(reading: str, text: str, gender: str, count: int) -> None:
    counts = count_cooccurrences([row(text, gender)], LABELS, reading)
    assert counts == {label: count if label == gender else 0 for label in LABELS}


def test_counts_add_up_over_sentences_and_shares_sum_to_one() -> None:
    rows = (row("She runs", "female"), row("He runs away", "male"), row("They run", "neutral"))
    table = bias_of_splits([Split("mine", "train", LABELS, rows)], ["paper"]).to_pylist()
    by_label = {r["label"]: r for r in table if r["scope"] == "train"}
    assert {label: r["cooccurrences"] for label, r in by_label.items()} == {"female": 2, "male": 3, "neutral": 2}
    assert by_label["male"]["bias"] == pytest.approx(3 / 7)
    assert by_label["male"]["ideal"] == pytest.approx(1 / 3)


def test_no_cooccurrence_is_null_with_a_reason() -> None:
    table = bias_of_splits([Split("mine", "train", ("female", "male"), (row("Nobody came", "female"),))], ["paper"])
    assert {(r["bias"], r["reason"], r["cooccurrences"]) for r in table.to_pylist()} == {(None, "no_cooccurrence", 0)}


def test_terms_of_another_attribute() -> None:
    terms = Terms({"young": (frozenset({"boy"}),), "old": (frozenset({"man"}),)})
    rows = [Row(("boy", "runs"), (1, 0), "young", 0, 0, 1), Row(("old", "man", "walks"), (0, 1, 0), "old", 1, 0, 2)]
    assert count_cooccurrences(rows, ("young", "old"), "paper", terms) == {"young": 2, "old": 3}


def test_bad_names_are_refused() -> None:
    with pytest.raises(UserError, match="literal"):
        count_cooccurrences([], LABELS, "litteral")
    with pytest.raises(UserError, match="young"):
        count_cooccurrences([], ("young",), "paper")


@pytest.fixture(scope="module")
def released(data_dir: Path) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for record in bias_of_tasks(data_dir=data_dir).to_pylist():
        found.setdefault((record["task"], record["scope"], record["reading"]), []).append(record)
    return found


@pytest.mark.parametrize(
    ("task", "scope", "counts", "bias"),
    [
        ("non_binary_gender_all", "train", [34285, 34305, 34914], [0.3312, 0.3314, 0.3373]),
        ("non_binary_gender_all", "train+test", [43111, 43131, 43850], [0.3314, 0.3315, 0.3371]),
        ("non_binary_gender_subj", "train", [28526, 31494, 25886], [0.3321, 0.3666, 0.3013]),
        ("non_binary_gender_subj", "train+test", [35907, 39526, 32535], [0.3326, 0.3661, 0.3013]),
        ("binary_gender_all", "train", [34285, 34305], [0.4999, 0.5001]),
        ("binary_gender_subj", "train", [28526, 31494], [0.4753, 0.5247]),
    ],
)
def test_the_paper_reading_of_the_release(
    released: dict[tuple[str, str, str], list[dict[str, Any]]],
    task: str,
    scope: str,
    counts: list[int],
    bias: list[float],
) -> None:
    records = released[task, scope, "paper"]
    assert [r["cooccurrences"] for r in records] == counts
    assert [round(r["bias"], 4) for r in records] == bias


def test_the_printed_values_are_the_paper_reading_truncated(
    released: dict[tuple[str, str, str], list[dict[str, Any]]],
) -> None:
    printed = {
        task: [math.floor(r["bias"] * 100) / 100 for r in released[task, "train+test", "paper"]]
        for task in ("non_binary_gender_all", "non_binary_gender_subj")
    }
    assert printed == {"non_binary_gender_all": [0.33, 0.33, 0.33], "non_binary_gender_subj": [0.33, 0.36, 0.30]}


@pytest.mark.parametrize(
    ("task", "scope", "reading", "bias"),
    [
        ("non_binary_gender_subj", "train", "paper-V", [0.3317, 0.3667, 0.3016]),
        ("non_binary_gender_all", "train+test", "literal", [0.3153, 0.3553, 0.3294]),
        ("non_binary_gender_subj", "train+test", "literal", [0.3266, 0.3267, 0.3467]),
    ],
)
def test_the_other_readings_of_the_release(
    released: dict[tuple[str, str, str], list[dict[str, Any]]],
    task: str,
    scope: str,
    reading: str,
    bias: list[float],
) -> None:
    assert [round(r["bias"], 4) for r in released[task, scope, reading]] == bias


def test_every_task_has_every_reading_in_both_scopes(
    released: dict[tuple[str, str, str], list[dict[str, Any]]],
) -> None:
    assert len(released) == 4 * 2 * len(READINGS)
    for records in released.values():
        assert sum(r["bias"] for r in records) == pytest.approx(1)
