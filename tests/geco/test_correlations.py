"""Correlation of tf-idf weights with the label: against numpy on a small corpus, and against the published words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geco_ray.errors import UserError
from geco_ray.geco.audit.audit import Split
from geco_ray.geco.audit.correlations import correlate_words, correlations_of_tasks, strongest_words
from geco_ray.geco.rows import Row

LABELS = ("female", "male", "neutral")


def rows(*texts: tuple[str, int]) -> tuple[Row, ...]:
    return tuple(
        Row(tuple(text.split()), (0,) * len(text.split()), LABELS[target], target, line, line + 1)
        for line, (text, target) in enumerate(texts)
    )


SMALL = rows(("She sees it", 0), ("He sees it", 1), ("She goes home", 0), ("He goes there", 1), ("They go", 2))


@pytest.mark.parametrize("target", [None, "female", "male"])
def test_values_are_the_pearson_correlation_of_each_column(target: str | None) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer()
    dense = vectorizer.fit_transform([" ".join(row.words) for row in SMALL]).toarray()
    label = [row.target if target is None else row.gender == target for row in SMALL]
    found = correlate_words(SMALL, target)
    for word, column in zip(vectorizer.get_feature_names_out(), dense.T, strict=True):
        assert found[word][0] == pytest.approx(np.corrcoef(column, np.array(label, float))[0, 1], abs=1e-11)
        assert found[word][1] == int((column > 0).sum())


def test_a_perfect_word_has_correlation_one_and_an_even_one_zero() -> None:
    found = correlate_words(rows(("aa", 0), ("aa", 0), ("bb", 1), ("bb", 1)))
    assert found == {"aa": (-1.0, 2), "bb": (1.0, 2)}
    assert correlate_words(rows(("aa cc", 0), ("bb cc", 1)))["cc"][0] == pytest.approx(0, abs=1e-12)


def test_the_table_is_ranked_by_strength_then_by_letter_on_either_side() -> None:
    table = strongest_words(Split("mine", "test", LABELS, SMALL), top=2).to_pylist()
    for side, sign in (("negative", -1), ("positive", 1)):
        part = [record for record in table if record["side"] == side]
        assert [record["rank"] for record in part] == [1, 2]
        strengths = [sign * record["correlation"] for record in part]
        assert strengths == sorted(strengths, reverse=True)
        assert min(strengths) > 0
    tied = strongest_words(Split("mine", "test", LABELS, rows(("dd cc", 0), ("aa bb", 1))), top=5).to_pylist()
    assert [record["word"] for record in tied] == ["cc", "dd", "aa", "bb"]


def test_an_undefined_correlation_is_refused() -> None:
    with pytest.raises(UserError, match="same label"):
        correlate_words(SMALL[:1])
    with pytest.raises(UserError, match="neutral"):
        correlate_words(SMALL, "neutrale")


@pytest.fixture(scope="module")
def released(data_dir: Path) -> list[dict[str, Any]]:
    return correlations_of_tasks(data_dir=data_dir, per_class=True).to_pylist()


PUBLISHED = {
    ("binary_gender_all", "negative"): "she .807 her .621 mother .163 herself .146 mrs .138 woman .131 sister .104 "
    "girl .104 daughter .104 wife .068",
    ("binary_gender_all", "positive"): "he .806 his .499 him .469 mr .152 father .148 himself .146 man .131 "
    "brother .105 son .104 boy .104",
    ("binary_gender_subj", "negative"): "she .761 her .197 mrs .082 herself .067 mother .064",
    ("binary_gender_subj", "positive"): "he .682 his .158 him .085 mr .069 himself .062",
    ("non_binary_gender_all", "negative"): "she .735 her .587",
    ("non_binary_gender_all", "positive"): "they .716 them .524 their .274 are .262",
    ("non_binary_gender_subj", "negative"): "she .675 her .173 is .103",
    ("non_binary_gender_subj", "positive"): "they .723 them .273 are .206",
}


@pytest.mark.parametrize("key", PUBLISHED, ids="-".join)
def test_the_release_has_the_published_words_to_three_digits(
    released: list[dict[str, Any]], key: tuple[str, str]
) -> None:
    task, side = key
    pairs = PUBLISHED[key].split()
    expected = dict(zip(pairs[::2], pairs[1::2], strict=True))
    part = [r for r in released if (r["task"], r["side"], r["target"]) == (task, side, "label")]
    found = {r["word"]: f"{abs(r['correlation']):.3f}"[1:] for r in part if r["word"] in expected}
    assert found == expected


def test_one_class_against_the_others_shows_the_middle_class_that_the_number_hides(
    released: list[dict[str, Any]],
) -> None:
    def strongest(target: str) -> str:
        part = [r for r in released if r["task"] == "non_binary_gender_all" and r["target"] == target]
        return str(next(r["word"] for r in part if r["side"] == "positive" and r["rank"] == 1))

    assert (strongest("male"), strongest("female"), strongest("neutral")) == ("he", "she", "they")
