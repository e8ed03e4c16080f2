"""The metrics: one generic case for all, by hand, against scikit-learn, and on the released data."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geco_ray.geco.explain import EXPLANATION_SCHEMA, SCORE_SCHEMA, score
from geco_ray.geco.metrics import METRICS, Metric, top_k_precision
from geco_ray.geco.protocol import CORRECTED, PROTOCOLS
from geco_ray.geco.scored import REASONS, ScoredRows


def values(name: str, rows: ScoredRows) -> np.ndarray:
    """A metric of all rows under the protocol ``corrected``."""
    return METRICS[name].compute(rows, CORRECTED)


def _one(name: str, scores: list[float], truth: list[int]) -> float:
    (value,) = values(name, ScoredRows.of([scores], [truth]))
    return float(value)


# Scores .5 (truth), .3, .2 (truth), .1, 0 of five words.
BY_HAND = {
    "mass_accuracy": 0.7 / 1.1,
    "roc_auc": 5 / 6,
    "average_precision": 0.5 * 1 + 0.5 * 2 / 3,
    # (recall, precision): (0, 1), (1/2, 1), (1/2, 1/2), (1, 2/3)
    "pr_auc": 0.5 * 1 + 0.5 * (1 / 2 + 2 / 3) / 2,
    # Thresholds .5, .3, .2 have specificity 1, 2/3, 2/3; .1 has 1/3. Lowest above 1/2: .2, precision 2/3.
    "precision_specificity": 2 / 3,
    "top_k_precision": 1 / 2,
}
UNDEFINED = {
    "non_finite_attribution": ([math.nan, 1.0], [1, 0]),
    "empty_truth": ([1.0, 2.0], [0, 0]),
    "full_truth": ([1.0, 2.0], [1, 1]),
    "zero_attribution": ([0.0, 0.0], [1, 0]),
}


def test_every_metric_and_every_reason_has_a_case() -> None:
    assert list(METRICS) == list(BY_HAND), "add the new metric's value to BY_HAND"
    assert list(REASONS) == list(UNDEFINED), "add a row that has no value for the new reason to UNDEFINED"


@pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
class TestMetric:
    def test_value_by_hand(self, metric: Metric) -> None:
        assert _one(metric.name, [0.3, 0.5, 0.1, 0.2, 0.0], [0, 1, 0, 1, 0]) == pytest.approx(BY_HAND[metric.name])

    def test_the_best_is_at_the_end_of_its_range_and_beats_chance(self, metric: Metric) -> None:
        truth = [1, 0, 1, 0, 0]
        best, worst = (_one(metric.name, [float(h == wanted) for h in truth], truth) for wanted in (1, 0))
        assert metric.better == "higher"
        assert best == metric.high
        assert metric.low <= worst < metric.chance(2, 5) < best

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_values_lie_in_its_range_and_are_null_for_its_reasons_only(self, metric: Metric, protocol: str) -> None:
        draws = np.random.default_rng(1)
        rows = [(draws.integers(0, 3, 6).astype(float), draws.integers(0, 2, 6)) for _ in range(300)]
        table = ScoredRows.of(*zip(*rows, *UNDEFINED.values(), strict=True))
        found = metric.compute(table, PROTOCOLS[protocol])
        undefined = [reason is not None for reason in table.why_null(metric.reasons)]
        assert np.isnan(found).tolist() == undefined
        assert ((metric.low <= found[~np.isnan(found)]) & (found[~np.isnan(found)] <= metric.high)).all()
        assert undefined[-len(UNDEFINED) :] == [reason in metric.reasons for reason in UNDEFINED]

    def test_chance_is_the_mean_over_all_orders(self, metric: Metric) -> None:
        for k, n in ((1, 2), (2, 5), (3, 5), (4, 6)):
            orders = list(itertools.permutations(range(1, n + 1)))
            found = values(metric.name, ScoredRows.of(orders, [[1] * k + [0] * (n - k)] * len(orders)))
            assert found.mean() == pytest.approx(metric.chance(k, n)), (k, n)

    def test_what_it_is_can_be_read(self, metric: Metric) -> None:
        assert metric.title != metric.name
        assert metric.formula
        assert all(REASONS[reason] in metric.null_when for reason in metric.reasons)


def test_mass_accuracy_by_hand() -> None:
    assert _one("mass_accuracy", [0.9, 0, 0, 0.1], [1, 1, 0, 0]) == pytest.approx(0.9)  # the paper's example
    assert _one("mass_accuracy", [1, 2, 3, 4], [0, 1, 0, 1]) == pytest.approx(0.6)
    assert _one("mass_accuracy", [5, 0], [1, 0]) == 1.0
    assert _one("mass_accuracy", [0, 5], [1, 0]) == 0.0
    assert _one("mass_accuracy", [1, 1], [1, 1]) == 1.0


def test_where_two_reasons_hold_the_earlier_one_is_given() -> None:
    rows = ScoredRows.of([[0, 0], [1, 2], [0, 0], [1, 2], [1, 1]], [[1, 0], [0, 0], [0, 0], [1, 0], [1, 1]])
    assert rows.why_null(METRICS["mass_accuracy"].reasons) == [
        "zero_attribution", "empty_truth", "empty_truth", None, None,
    ]  # fmt: skip
    assert rows.why_null(METRICS["roc_auc"].reasons) == [None, "empty_truth", "empty_truth", None, "full_truth"]


def test_ties() -> None:
    assert _one("roc_auc", [1, 1, 1], [1, 0, 0]) == 0.5
    assert _one("average_precision", [1, 1, 1], [1, 0, 0]) == pytest.approx(1 / 3)
    assert _one("precision_specificity", [1, 1, 1], [1, 0, 0]) == 0.0
    assert _one("top_k_precision", [2, 1, 1, 0], [0, 1, 0, 1]) == pytest.approx(0.25)  # one of the tied two, in mean


def test_top_k_as_published_takes_the_mask_for_positions() -> None:
    perfect = ScoredRows.of([[0, 1, 2, 9]], [[0, 0, 0, 1]])
    assert top_k_precision(perfect).tolist() == [1.0]
    assert top_k_precision(perfect, "mask_as_index").tolist() == [0.0]


def _published_top_k(score: list[float], truth: list[int]) -> float:
    order, mask = np.argsort(score)[::-1], np.array(truth)
    best, marked = set(order[mask].tolist()), set(np.arange(len(mask))[mask].tolist())
    return len(best & marked) / len(best)


def test_top_k_as_published_is_the_published_computation_where_no_scores_tie() -> None:
    draws = np.random.default_rng(2)
    scores = [draws.random(size).tolist() for size in (2, 3, 5, 9, 30) for _ in range(20)]
    truths = [[1, *draws.integers(0, 2, len(score) - 2).tolist(), 0] for score in scores]
    expected = [_published_top_k(score, truth) for score, truth in zip(scores, truths, strict=True)]
    assert top_k_precision(ScoredRows.of(scores, truths), "mask_as_index").tolist() == expected
    tied = ScoredRows.of(
        [[1, 1, 1, 0], [2, 1]], [[0, 0, 1, 1], [0, 1]]
    )  # earlier word first: both; later first: one of two
    assert top_k_precision(tied, "mask_as_index").tolist() == [0.75, 1.0]


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        ScoredRows.of([[1.0, 2.0]], [[1]])
    with pytest.raises(ValueError, match="not be negative"):
        ScoredRows.of([[-1.0]], [[1]])
    assert all(len(values(name, ScoredRows.of([], []))) == 0 for name in METRICS)


sentence = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=12)


@settings(max_examples=40, deadline=None)
@given(st.lists(sentence, min_size=1, max_size=6))
def test_all_rows_at_once_equal_scikit_learn_row_by_row(sentences: list[list[tuple[int, bool]]]) -> None:
    from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_auc_score

    scores = [[float(value) for value, _ in words] for words in sentences]
    truths = [[int(flag) for _, flag in words] for words in sentences]
    rows = ScoredRows.of(scores, truths)
    found = {name: values(name, rows) for name in METRICS}
    for index, (s, h) in enumerate(zip(scores, truths, strict=True)):
        alone = {name: _one(name, s, h) for name in METRICS}
        assert all(alone[name] == pytest.approx(found[name][index], nan_ok=True) for name in METRICS)
        if 0 < sum(h) < len(h):
            precision, recall, _ = precision_recall_curve(h, s)
            assert alone["roc_auc"] == pytest.approx(roc_auc_score(h, s))
            assert alone["average_precision"] == pytest.approx(average_precision_score(h, s))
            assert alone["pr_auc"] == pytest.approx(auc(recall, precision))


def test_score_keeps_every_row_and_its_order() -> None:
    row = {"sentence_idx": 4, "target": 1, "gender": "male", "predicted": 0, "correct": False, "words": ["he", "."]}
    attributions = ([0.5, 0.25], [0.0, 0.0], [0.1, 0.2])
    truths = ([1, 0], [1, 0], [0, 0])
    rows = [
        {**row, "row": 9 - i, "attribution": a, "signed": a, "truth": t, "completeness_gap": None}
        for i, (a, t) in enumerate(zip(attributions, truths, strict=True))
    ]
    table = score(pa.Table.from_pylist(rows, schema=EXPLANATION_SCHEMA))
    assert table.schema.equals(SCORE_SCHEMA)
    assert table["row"].to_pylist() == [9, 8, 7]
    assert table["mass_accuracy"].to_pylist() == [pytest.approx(2 / 3), None, None]
    assert table["reason"].to_pylist() == [None, "zero_attribution", "empty_truth"]
    assert table["ranking_reason"].to_pylist() == [None, None, "empty_truth"]
    assert table["roc_auc"].to_pylist() == [1.0, 0.5, None]
    assert table["correct"].to_pylist() == [False] * 3


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_row_that_is_not_finite_is_null_with_a_reason_and_leaves_the_others_alone(bad: float) -> None:
    good = ([0.3, 0.5, 0.1], [0, 1, 0])
    rows = ScoredRows.of([good[0], [bad, 0.5], good[0], [bad]], [good[1], [1, 0], good[1], [0]])
    for name, metric in METRICS.items():
        value = _one(name, *good)
        assert values(name, rows).tolist() == pytest.approx([value, math.nan, value, math.nan], nan_ok=True), name
        assert rows.why_null(metric.reasons) == [None, "non_finite_attribution", None, "non_finite_attribution"]
    assert np.isnan(top_k_precision(rows, "mask_as_index")[[1, 3]]).all()
    row = {"sentence_idx": 4, "target": 1, "gender": "male", "predicted": 0, "correct": False, "words": ["he", "."]}
    lists = {"attribution": [bad, 0.0], "signed": [bad, 0.0], "truth": [1, 0], "completeness_gap": None}
    table = score(pa.Table.from_pylist([{**row, "row": 0, **lists}], schema=EXPLANATION_SCHEMA))
    assert table["mass_accuracy"].to_pylist() == table["roc_auc"].to_pylist() == [None]
    assert table["reason"].to_pylist() == table["ranking_reason"].to_pylist() == ["non_finite_attribution"]


def test_scores_of_no_rows() -> None:
    assert score(EXPLANATION_SCHEMA.empty_table()).schema.equals(SCORE_SCHEMA)


def test_shipped_reference_data_is_seen_or_skipped(data_dir: Path) -> None:
    """Truth masks of the released data: expected mass accuracy of word-level uniform scores is the share of truth."""
    from geco_ray.geco.data.dataset import load_task

    for name, expected in (("binary_gender_all", 0.169), ("binary_gender_subj", 0.090)):
        rows = [row for row in load_task(name, data_dir).test if sum(row.truth)]
        draws = np.random.default_rng(0)
        table = ScoredRows.of([draws.random(len(row.words)) for row in rows], [row.truth for row in rows])
        assert values("mass_accuracy", table).mean() == pytest.approx(expected, abs=0.006), name
