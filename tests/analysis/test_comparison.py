"""Comparisons that pages state: how often a page says something false, how much it finds, and the exact pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from analysis.cfe.findings import concordance_finding
from analysis.cfe.ranking import shown_reversals
from analysis.comparison.pairs import PAIR_COLUMNS, Clusters, adjusted, compare_pairs, detectable, holm, sign_flip
from analysis.comparison.ranks import concordance, critical_difference, kendalls_w
from analysis.comparison.sentences import Words, by_label, comparison_notes, standing
from geco_ray.seeds import numpy_stream

WORDS = Words("ahead of", ("seed", "seeds"), "source sentences", 2)
Array = NDArray[np.float64]


def page(
    rng: np.random.Generator, methods: int, seeds: int, lift: Array | float = 0.0, shared: bool = True,
    sentences: int = 30,
) -> pd.DataFrame:  # fmt: skip
    """One made-up page: methods of true mean ``lift``, seeds and sentences that all methods share, noise of each."""
    effects = rng.normal(size=(1, seeds, 1)) + rng.normal(size=(1, 1 if shared else seeds, sentences))
    own = 0.5 * rng.normal(size=(methods, seeds, 1)) + rng.normal(size=(methods, 1 if shared else seeds, sentences))
    values = np.reshape(lift, (-1, 1, 1)) + effects + own + 0.3 * rng.normal(size=(methods, seeds, sentences))
    counts = [np.ones((methods, sentences))] * seeds
    clusters = Clusters([values[:, seed] for seed in range(seeds)], counts, shared)
    rows = [
        {"first": str(one), "second": str(two), "first_settings": "", "second_settings": "", **found}
        for one, two, found in compare_pairs(values.mean(axis=2), clusters, str(rng.integers(1 << 30)))
    ]
    return adjusted(pd.DataFrame(rows))


def claims(pairs: pd.DataFrame) -> int:
    return int(pairs["verdict"].isin(["ahead", "behind"]).sum())


@pytest.mark.parametrize(("methods", "seeds", "shared"), [(2, 3, True), (4, 5, True), (4, 3, False), (10, 10, True)])
def test_few_pages_of_equal_methods_claim_a_lead(methods: int, seeds: int, shared: bool, capsys: Any) -> None:
    rng, pages = numpy_stream("false claims", methods, seeds, shared), 120
    false = sum(claims(page(rng, methods, seeds, shared=shared)) > 0 for _ in range(pages))
    lift = np.arange(methods) * 4.0
    found = [claims(page(rng, methods, seeds, lift, shared)) / (methods * (methods - 1) / 2) for _ in range(10)]
    with capsys.disabled():
        print(
            f"\n{methods} methods, {seeds} seeds: {false / pages:.1%} pages false, power {np.mean(found):.0%}", end=""
        )
    assert false <= 0.05 * pages + 2 * np.sqrt(0.05 * 0.95 * pages)
    assert np.mean(found) > 0.3  # a silent page would hold the level too


def test_plain_intervals_would_be_wrong_on_many_pages() -> None:
    rng, pages = numpy_stream("plain pairs"), 60
    plain = sum((page(rng, 10, 5)["p"] < 0.05).any() for _ in range(pages))
    assert plain > 0.5 * pages


def test_holms_steps_by_hand() -> None:
    found = holm(np.array([0.04, 0.01, np.nan, 0.03]))
    assert found[[0, 1, 3]].tolist() == [pytest.approx(0.06), pytest.approx(0.03), pytest.approx(0.06)]
    assert np.isnan(found[2])


def test_a_sign_flip_cannot_be_smaller_than_its_count_of_seeds_allows() -> None:
    assert sign_flip(np.array([1.0, 2.0, 3.0])) == 0.25
    assert sign_flip(np.array([1.0, 2.0, 3.0, 1.5, 2.5])) == 0.0625
    assert sign_flip(np.array([1.0, -1.0])) == 1.0
    assert np.isnan(sign_flip(np.array([])))


def test_missing_seeds_are_left_out_and_shown() -> None:
    values = np.array([[1.0, 2.0, np.nan, 4.0], [0.5, 1.2, 3.0, 3.1]])
    ((_, _, found),) = compare_pairs(values, None, "x")
    assert set(found) == set(PAIR_COLUMNS)
    assert (found["seeds"], found["difference"]) == (3, pytest.approx(np.mean([0.5, 0.8, 0.9])))


def test_the_same_difference_in_every_seed_has_no_t_test() -> None:
    ((_, _, found),) = compare_pairs(np.array([[0.75] * 3, [0.5] * 3]), None, "x")
    assert np.isnan(float(str(found["p"])))
    assert found["p_sign_flip"] == 0.25


def test_a_sentence_names_both_intervals_where_they_disagree() -> None:
    columns = dict(zip(PAIR_COLUMNS, (3, 0.4, 0.02, 0.001, 0.25, 0.25, 9, 0.5, 0.4, 0.5), strict=True))
    ends = {"first": "a", "second": "b", "first_settings": "", "second_settings": ""}
    pairs = adjusted(pd.DataFrame([ends | columns]))
    assert pairs["verdict"].tolist() == ["seeds_ahead"]
    found = by_label(pairs, {("a", ""): "A", ("b", ""): "B"})
    assert standing("A", ["B"], found, WORDS) == (
        "ahead of B over seeds alone, not told apart over source sentences (0.40, [0.35, 0.45] and [-0.75, 1.55])"
    )
    assert "not told apart from A" in standing("B", ["A"], found, WORDS)


def test_notes_say_what_few_seeds_allow() -> None:
    pairs = page(numpy_stream("notes"), 3, 3)
    first, second = comparison_notes(pairs, WORDS)
    assert "all 3 pairs" in first
    assert "5 % of such pages" in first
    assert "cannot give a p below 0.25, so by itself it can never be below 0.05" in second


def test_the_detectable_difference_has_its_power() -> None:
    size = detectable(5, 1)
    assert size is not None
    draws = size + numpy_stream("power").normal(size=(4000, 5))
    t = draws.mean(axis=1) / (draws.std(axis=1, ddof=1) / np.sqrt(5))
    assert np.mean(t > 2.776) == pytest.approx(0.8, abs=0.03)
    assert detectable(1, 1) is None


def test_nemenyi_with_few_data_sets_tells_hardly_anything_apart() -> None:
    assert critical_difference(9, 4) == pytest.approx(6.007, abs=0.01)
    values = pd.DataFrame(np.arange(36, dtype=float).reshape(9, 4), index=list("abcdefghi"))
    found = concordance(values)
    assert found is not None
    assert (found.w, found.chi2) == (pytest.approx(1.0), pytest.approx(32.0))
    assert "must differ by 6.0 of at most 8 ranks" in concordance_finding(found)


def test_kendalls_w_of_nothing_but_ties_is_null() -> None:
    assert kendalls_w(pd.DataFrame([[1.5, 1.5], [1.5, 1.5]])) is None
    found = concordance(pd.DataFrame([[1.0, 1.0]] * 3))
    assert found is not None
    assert "no order to test" in concordance_finding(found)


def test_two_methods_have_a_sign_test() -> None:
    found = concordance(pd.DataFrame([[0.9, 0.8, 0.7, 0.9], [0.5, 0.5, 0.5, 0.5]], index=["a", "b"]))
    assert found is not None
    assert (found.p, found.chi2) == (pytest.approx(0.125), None)
    assert "exact sign test p = 0.125" in concordance_finding(found)


def test_a_change_of_places_counts_beyond_the_spread_alone() -> None:
    rng = numpy_stream("reversals")
    noise = {(name, family): 0.01 * rng.normal(size=5) for name in "ab" for family in "fg"}
    level = pd.DataFrame(noise)
    turned = level + pd.DataFrame({key: [float(key in {("a", "f"), ("b", "g")})] * 5 for key in noise})
    assert (shown_reversals(level), shown_reversals(turned)) == (0, 1)
