"""The measures: by hand, against scikit-learn, and on the released data."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geco_ray.geco import metrics
from geco_ray.geco.explain import EXPLANATION_SCHEMA, SCORE_SCHEMA, score
from geco_ray.geco.metrics import Rows

MEASURES = {name: getattr(metrics, name) for name in ("mass_accuracy", *metrics.RANKING_MEASURES)}


def _one(measure: str, scores: list[float], truth: list[int]) -> float:
    (value,) = MEASURES[measure](Rows.of([scores], [truth]))
    return float(value)


def test_mass_accuracy_by_hand() -> None:
    assert _one("mass_accuracy", [0.9, 0, 0, 0.1], [1, 1, 0, 0]) == pytest.approx(0.9)  # the paper's example
    assert _one("mass_accuracy", [1, 2, 3, 4], [0, 1, 0, 1]) == pytest.approx(0.6)
    assert _one("mass_accuracy", [5, 0], [1, 0]) == 1.0
    assert _one("mass_accuracy", [0, 5], [1, 0]) == 0.0
    assert _one("mass_accuracy", [1, 1], [1, 1]) == 1.0


def test_undefined_has_a_reason_and_is_not_a_number() -> None:
    rows = Rows.of([[0, 0], [1, 2], [0, 0], [1, 2], [1, 1]], [[1, 0], [0, 0], [0, 0], [1, 0], [1, 1]])
    mass, ranking = rows.reasons()
    assert mass == ["zero_attribution", "empty_truth", "empty_truth", None, None]
    assert ranking == [None, "empty_truth", "empty_truth", None, "full_truth"]
    assert [math.isnan(value) for value in metrics.mass_accuracy(rows)] == [reason is not None for reason in mass]
    for name in metrics.RANKING_MEASURES:
        undefined = [math.isnan(value) for value in MEASURES[name](rows)]
        assert undefined == [reason is not None for reason in ranking], name


def test_ranking_measures_by_hand() -> None:
    # Sorted: .5 truth, .3 other, .2 truth, .1 other, 0 other.
    scores, truth = [0.3, 0.5, 0.1, 0.2, 0.0], [0, 1, 0, 1, 0]
    assert _one("roc_auc", scores, truth) == pytest.approx(5 / 6)
    assert _one("average_precision", scores, truth) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    # (recall, precision): (0, 1), (1/2, 1), (1/2, 1/2), (1, 2/3)
    assert _one("pr_auc", scores, truth) == pytest.approx(0.5 * 1 + 0.5 * (1 / 2 + 2 / 3) / 2)
    # Thresholds .5, .3, .2 have specificity 1, 2/3, 2/3; .1 has 1/3. Lowest above 1/2: .2, precision 2/3.
    assert _one("precision_specificity", scores, truth) == pytest.approx(2 / 3)
    assert _one("top_k_precision", scores, truth) == pytest.approx(1 / 2)


def test_ties() -> None:
    assert _one("roc_auc", [1, 1, 1], [1, 0, 0]) == 0.5
    assert _one("average_precision", [1, 1, 1], [1, 0, 0]) == pytest.approx(1 / 3)
    assert _one("precision_specificity", [1, 1, 1], [1, 0, 0]) == 0.0
    assert _one("top_k_precision", [2, 1, 1, 0], [0, 1, 0, 1]) == pytest.approx(0.25)  # one of the tied two, in mean


def test_top_k_as_published_takes_the_mask_for_positions() -> None:
    perfect = Rows.of([[0, 1, 2, 9]], [[0, 0, 0, 1]])
    assert metrics.top_k_precision(perfect).tolist() == [1.0]
    assert metrics.top_k_precision(perfect, "mask_as_index").tolist() == [0.0]


def _published_top_k(score: list[float], truth: list[int]) -> float:
    order, mask = np.argsort(score)[::-1], np.array(truth)
    best, marked = set(order[mask].tolist()), set(np.arange(len(mask))[mask].tolist())
    return len(best & marked) / len(best)


def test_top_k_as_published_is_the_published_computation_where_no_scores_tie() -> None:
    draws = np.random.default_rng(2)
    scores = [draws.random(size).tolist() for size in (2, 3, 5, 9, 30) for _ in range(20)]
    truths = [[1, *draws.integers(0, 2, len(score) - 2).tolist(), 0] for score in scores]
    expected = [_published_top_k(score, truth) for score, truth in zip(scores, truths, strict=True)]
    assert metrics.top_k_precision(Rows.of(scores, truths), "mask_as_index").tolist() == expected
    tied = Rows.of([[1, 1, 1, 0], [2, 1]], [[0, 0, 1, 1], [0, 1]])  # earlier word first: both; later first: one of two
    assert metrics.top_k_precision(tied, "mask_as_index").tolist() == [0.75, 1.0]


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        Rows.of([[1.0, 2.0]], [[1]])
    with pytest.raises(ValueError, match="not be negative"):
        Rows.of([[-1.0]], [[1]])
    assert all(len(measure(Rows.of([], []))) == 0 for measure in MEASURES.values())


sentence = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=12)


@settings(max_examples=40, deadline=None)
@given(st.lists(sentence, min_size=1, max_size=6))
def test_all_rows_at_once_equal_scikit_learn_row_by_row(sentences: list[list[tuple[int, bool]]]) -> None:
    from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_auc_score

    scores = [[float(value) for value, _ in words] for words in sentences]
    truths = [[int(flag) for _, flag in words] for words in sentences]
    rows = Rows.of(scores, truths)
    found = {name: measure(rows) for name, measure in MEASURES.items()}
    for index, (s, h) in enumerate(zip(scores, truths, strict=True)):
        alone = {name: _one(name, s, h) for name in MEASURES}
        assert all(alone[name] == pytest.approx(found[name][index], nan_ok=True) for name in MEASURES)
        if 0 < sum(h) < len(h):
            precision, recall, _ = precision_recall_curve(h, s)
            assert alone["roc_auc"] == pytest.approx(roc_auc_score(h, s))
            assert alone["average_precision"] == pytest.approx(average_precision_score(h, s))
            assert alone["pr_auc"] == pytest.approx(auc(recall, precision))
            assert 0 <= alone["top_k_precision"] <= 1
            assert 0 <= alone["precision_specificity"] <= 1


def test_chance_level_of_mass_accuracy_and_top_k() -> None:
    """Exchangeable scores: k / n for both, 1/2 for the area under the ROC curve."""
    draws = np.random.default_rng(3).random((4000, 12))
    rows = Rows.of(list(draws), [[1, 1, 1] + [0] * 9] * len(draws))
    assert metrics.mass_accuracy(rows).mean() == pytest.approx(0.25, abs=0.005)
    assert metrics.top_k_precision(rows).mean() == pytest.approx(0.25, abs=0.012)
    assert metrics.roc_auc(rows).mean() == pytest.approx(0.5, abs=0.01)


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
    rows = Rows.of([good[0], [bad, 0.5], good[0], [bad]], [good[1], [1, 0], good[1], [0]])
    mass, ranking = rows.reasons()
    assert mass == ranking == [None, "non_finite_attribution", None, "non_finite_attribution"]
    for name, measure in MEASURES.items():
        value = _one(name, *good)
        assert measure(rows).tolist() == pytest.approx([value, math.nan, value, math.nan], nan_ok=True), name
    assert np.isnan(metrics.top_k_precision(rows, "mask_as_index")[[1, 3]]).all()
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
        table = Rows.of([draws.random(len(row.words)) for row in rows], [row.truth for row in rows])
        assert metrics.mass_accuracy(table).mean() == pytest.approx(expected, abs=0.006), name
