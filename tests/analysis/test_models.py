"""Table 3, measures per class and differences between forms, from predictions whose numbers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from analysis.geco.models import classes, forms, paradigms
from analysis.geco.models.predictions import predictions
from analysis.geco.tables import accuracy_table
from analysis.geco.topic import TOPIC
from analysis.topic import Numbers
from geco_ray.geco.trained import history_schema

FACTS = {"labels": ["female", "male"], "trained": ["embeddings", "head"], "redrawn": ["head"],
         "trained_parameters": 1200, "parameters": 34000}  # fmt: skip
# (sentence, target, predicted, probability of male)
FIRST = [(0, 0, 0, 0.1), (0, 1, 1, 0.8), (1, 0, 1, 0.6), (1, 1, 1, 0.7), (2, 0, 0, 0.3), (2, 1, 0, 0.2)]


def put(kit: Any, ledger: Any, seed: int | None, rows: list[Any], paradigm: str = "BERT-CE", **facts: Any) -> Any:
    """A trained model that says ``rows`` of its test split."""
    cell = kit.train_cell("binary_gender_all", paradigm, seed)
    said = [
        {"row": number, "sentence_idx": sentence, "target": target, "predicted": predicted,
         "probabilities": None if male is None else [1 - male, male]}
        for number, (sentence, target, predicted, male) in enumerate(rows)
    ]  # fmt: skip
    right = float(np.mean([target == predicted for _, target, predicted, _ in rows]))
    accuracies = {f"{split}_accuracy_at_best": right for split in ("train", "validation", "test")}
    epochs = [{"epoch": 1, "best": False}, {"epoch": 2, "best": True, "test_rows_at_best": said, **accuracies}]
    ledger.put(cell, pa.Table.from_pylist(epochs, schema=history_schema()))
    ledger.cells[cell.id][0].info["model"] = {**FACTS, **facts}
    return cell


@pytest.fixture
def ledger(kit: Any) -> Any:
    """One model, one seed."""
    made = kit.FakeLedger()
    put(kit, made, 0, FIRST)
    return made


def test_measures_of_each_class_by_hand(ledger: Any) -> None:
    table = classes.class_measures(predictions(ledger)).set_index("label")
    female, male = table.loc["female"], table.loc["male"]
    assert (female["recall"], female["specificity"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert (male["precision"], male["f1"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert male["roc_auc"] == pytest.approx((3 + 3 + 1) / 9)  # pairs in which the male row scores above
    assert female["roc_auc"] == pytest.approx(male["roc_auc"])
    assert (male["rows"], male["recall_n"]) == (3, 1)


@pytest.mark.parametrize("seed", range(3))
def test_roc_auc_and_f1_are_scikit_learns(seed: int) -> None:
    from sklearn.metrics import f1_score, precision_score, roc_auc_score

    rng = np.random.default_rng(seed)
    truth, found, score = rng.random(60) < 0.4, rng.random(60) < 0.5, np.round(rng.random(60), 1)
    _, _, precision, f1, area = classes.measures(truth, found, score)
    assert area == pytest.approx(roc_auc_score(truth, score))
    assert f1 == pytest.approx(f1_score(truth, found))
    assert precision == pytest.approx(precision_score(truth, found))


def test_measures_without_a_denominator_are_null() -> None:
    none = np.zeros(4, bool)
    recall, specificity, precision, f1, area = classes.measures(none, none, np.zeros(4))
    assert specificity == 1.0
    assert np.isnan([recall, precision, f1, area]).all()


def test_measures_are_means_over_seeds(kit: Any, ledger: Any) -> None:
    put(kit, ledger, 1, [(s, t, t, 0.9 if t else 0.1) for s, t, _, _ in FIRST])
    row = classes.class_measures(predictions(ledger)).set_index("label").loc["male"]
    assert (row["recall"], row["recall_n"]) == (pytest.approx((2 / 3 + 1) / 2), 2)
    assert row["recall_sd"] == pytest.approx(np.std([2 / 3, 1], ddof=1))


def test_a_rule_without_probabilities_or_without_a_prediction_has_gaps_and_counts(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, None, [(0, 0, 0, None), (0, 1, -1, None)], "BERT-ZS")
    row = classes.class_measures(predictions(ledger)).set_index("label").loc["male"]
    assert row["recall"] == 0
    assert (row["roc_auc_n"], np.isnan(row["roc_auc"])) == (0, True)
    shares = classes.confusion(predictions(ledger)).set_index(["label", "predicted"])["share"].to_dict()
    assert shares == {("female", 0): 1.0, ("male", -1): 1.0}
    assert forms.probability_differences(predictions(ledger)).empty


def test_confusion_is_a_share_over_seeds_in_which_a_missing_pair_counts_zero(kit: Any, ledger: Any) -> None:
    put(kit, ledger, 1, [(s, t, t, 0.5) for s, t, _, _ in FIRST])
    shares = classes.confusion(predictions(ledger)).set_index(["label", "predicted"])["share"].to_dict()
    expected = {("female", 0): 5 / 6, ("female", 1): 1 / 6, ("male", 0): 1 / 6, ("male", 1): 5 / 6}
    assert shares == pytest.approx(expected)


def test_three_classes_are_measured_against_the_rest_and_compared_pairwise(kit: Any) -> None:
    ledger = kit.FakeLedger()
    cell = put(kit, ledger, 0, [(0, 0, 0, 0.1), (0, 1, 1, 0.8)], labels=["a", "b", "c"])
    record, table = ledger.cells[cell.id]
    rows = table["test_rows_at_best"].to_pylist()
    for line in rows[1]:
        line["probabilities"] = [*line["probabilities"], 0.0]
    rows[1].append({"row": 2, "sentence_idx": 0, "target": 2, "predicted": 1, "probabilities": [0.1, 0.5, 0.4]})
    column = pa.array(rows, history_schema().field("test_rows_at_best").type)
    number = table.column_names.index("test_rows_at_best")
    ledger.cells[cell.id] = (record, table.set_column(number, "test_rows_at_best", column))
    measured = classes.class_measures(predictions(ledger)).set_index("label")
    assert measured["recall"].to_dict() == {"a": 1.0, "b": 1.0, "c": 0.0}
    assert measured["specificity"].to_dict() == {"a": 1.0, "b": 0.5, "c": 1.0}
    pairs = forms.probability_differences(predictions(ledger))
    assert list(zip(pairs["first"], pairs["second"], strict=True)) == [("a", "b")]  # c is not classified right


def test_forms_are_compared_where_both_are_right(ledger: Any) -> None:
    (row,) = forms.probability_differences(predictions(ledger)).to_dict("records")
    assert (row["first"], row["second"], row["sentences"]) == ("female", "male", 1)
    assert (row["difference"], row["absolute"]) == (pytest.approx(0.9 - 0.8), pytest.approx(0.1))


def test_differences_of_forms_are_tested_within_a_seed_and_over_seeds(kit: Any) -> None:
    from scipy.stats import ttest_1samp, wilcoxon

    ledger, means = kit.FakeLedger(), []
    for seed in range(3):
        male = np.random.default_rng(seed).uniform(0.6, 0.9, 12)
        put(kit, ledger, seed, [row for n, p in enumerate(male) for row in ((n, 0, 0, 0.2), (n, 1, 1, float(p)))])
        means.append(float(np.mean(0.8 - male.astype(np.float32))))
        expected = wilcoxon(0.8 - male).pvalue
    by_seed = forms.probability_differences(predictions(ledger))
    assert by_seed["p"].iloc[-1] == pytest.approx(expected)
    row = forms.over_models(by_seed, (*forms.GROUP, "first", "second")).iloc[0]
    assert (row["difference"], row["difference_n"]) == (pytest.approx(np.mean(means), abs=1e-6), 3)
    assert row["p_seeds"] == pytest.approx(ttest_1samp(means, 0).pvalue, rel=1e-3)


def test_attributions_of_forms_are_compared_word_by_word() -> None:
    rows = [
        {"sentence_idx": 4, "target": 1, "correct": True, "truth": [0, 1, 0], "attribution": [0.2, 0.5, 0.3]},
        {"sentence_idx": 4, "target": 0, "correct": True, "truth": [0, 1, 0], "attribution": [0.1, 0.8, 0.1]},
        {"sentence_idx": 5, "target": 0, "correct": True, "truth": [1], "attribution": [None]},
        {"sentence_idx": 5, "target": 1, "correct": True, "truth": [1], "attribution": [1.0]},
        {"sentence_idx": 6, "target": 0, "correct": False, "truth": [1], "attribution": [1.0]},
        {"sentence_idx": 6, "target": 1, "correct": True, "truth": [1], "attribution": [1.0]},
        {"sentence_idx": 7, "target": 0, "correct": True, "truth": [1], "attribution": [1.0]},
        {"sentence_idx": 7, "target": 1, "correct": True, "truth": [1, 0], "attribution": [0.5, 0.5]},
    ]
    (pair,) = forms.form_differences(pa.Table.from_pylist(rows)).to_pylist()
    assert (pair["sentence_idx"], pair["first"], pair["second"]) == (4, 0, 1)
    assert (pair["truth"], pair["truth_absolute"]) == (pytest.approx(0.3), pytest.approx(0.3))
    assert (pair["other"], pair["other_absolute"]) == (pytest.approx(-0.15), pytest.approx(0.15))


def test_table_3_says_parts_parameters_and_accuracy(ledger: Any) -> None:
    numbers = Numbers(TOPIC, ledger)
    table = paradigms.paradigm_table(ledger, None, accuracy_table(numbers.frames))
    (view,) = paradigms.paradigm_views(table, numbers.titles)
    assert view.rows == (("BERT-CE", "minilm", "embeddings, head", "head", "1,200", "34,000", "66.7 (n=1)"),)


def test_a_paradigm_at_two_rates_is_two_rows_that_say_so(kit: Any, ledger: Any) -> None:
    table = paradigms.paradigm_table(ledger, None, accuracy_table(Numbers(TOPIC, ledger).frames))
    other = table.assign(model_settings='{"learning_rate": 0.1}')
    both = paradigms.pd.concat([table.assign(model_settings='{"learning_rate": 0.01}'), other])
    (view,) = paradigms.paradigm_views(both, Numbers(TOPIC, ledger).titles)
    assert [row[0] for row in view.rows] == ["BERT-CE [learning_rate=0.01]", "BERT-CE [learning_rate=0.1]"]


def test_records_that_say_nothing_leave_gaps(kit: Any) -> None:
    ledger = kit.FakeLedger()
    ledger.put(kit.train_cell("binary_gender_all", "BERT-C", 0), kit.history_table([0.5, 0.9]))
    numbers = Numbers(TOPIC, ledger)
    assert predictions(ledger).empty
    for table in (numbers.table("class_measures.csv"), numbers.table("confusion.csv")):
        assert table.empty
    (view,) = paradigms.paradigm_views(numbers.table("paradigms.csv"), numbers.titles)
    assert view.rows[0][2:6] == ("–", "–", "–", "–")
