"""Mass accuracy by seed, from rows whose means are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.geco.filters import counted_rows
from analysis.geco.frames import load
from analysis.geco.tables import accuracy_table, metric_by_seed, metric_table
from analysis.geco.views import mass_views
from geco_ray.errors import UserError


def put(
    kit: Any, ledger: Any, seed: int | None, rows: list[tuple[float | None, bool, str | None]], **change: Any
) -> str:
    paradigm, method = change.get("paradigm", "BERT-C"), change.get("method", "saliency")
    model = kit.train_cell("binary_gender_all", paradigm, seed)
    explained = kit.ExplainCell(model, method, kit.NoOptions(), change.get("sentences"))
    scored = kit.ScoreCell(explained)
    ledger.put(scored, kit.score_table(rows))
    if change.get("explain", True):
        truth = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]][: len(rows)]
        ledger.put(explained, kit.explain_table(truth, [row[1] for row in rows], np.array([0.5] * len(truth))))
    return scored.id


def test_correct_rows_lead_and_all_rows_stand_beside(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 0, [(0.2, True, None), (0.6, False, None), (None, True, "empty_truth")])
    put(kit, ledger, 1, [(0.4, True, None), (0.8, True, None), (None, False, "empty_truth")])
    row = metric_table(load(ledger)).iloc[0]
    assert row["mean"] == pytest.approx((0.2 + 0.6) / 2)  # seed means .2 and .6 over correct, defined rows
    assert row["mean_sd"] == pytest.approx(np.std([0.2, 0.6], ddof=1))
    assert row["all_mean"] == pytest.approx((0.4 + 0.6) / 2)
    assert (row["mean_n"], row["rows"], row["undefined"]) == (2, 4, 1)
    assert (row["all_rows"], row["all_undefined"], row["reasons"]) == (6, 2, "empty_truth: 2")
    assert row["chance"] == pytest.approx((0.25 + (0.25 + 0.5) / 2) / 2)  # over the very rows of the mean
    assert row["low"] == pytest.approx(0.2)
    assert row["high"] == pytest.approx(0.6)


def test_median_is_over_sentences_within_a_seed(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 0, [(0.1, True, None), (0.2, True, None), (0.9, True, None)])
    row = metric_table(load(ledger)).iloc[0]
    assert (row["median"], row["mean"]) == (pytest.approx(0.2), pytest.approx(0.4))


def test_a_seed_without_correct_rows_is_a_gap_with_a_count(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 0, [(0.2, False, None)])
    put(kit, ledger, 1, [(0.4, True, None)])
    row = metric_table(load(ledger)).iloc[0]
    assert (row["mean"], row["seeds"], row["mean_n"]) == (pytest.approx(0.4), 2, 1)
    assert np.isnan(row["mean_sd"])


def test_one_run_without_a_seed_is_one_value(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, None, [(0.3, True, None)], paradigm="BERT-ZS")
    row = metric_table(load(ledger)).iloc[0]
    assert (row["mean"], row["mean_n"]) == (pytest.approx(0.3), 1)


def test_cells_of_unlike_settings_are_never_averaged(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 0, [(0.2, True, None)])
    put(kit, ledger, 0, [(0.6, True, None)], sentences=1)
    frames = load(ledger)
    table = metric_table(frames)
    assert sorted(table["mean"]) == [pytest.approx(0.2), pytest.approx(0.6)]
    labels = [row[0] for row in mass_views(table, accuracy_table(frames))[0].rows[:2]]
    assert sorted(labels) == ["Saliency [sentences=1]", "Saliency [sentences=null]"]


def test_only_the_named_cells_count(kit: Any) -> None:
    ledger = kit.FakeLedger()
    first = put(kit, ledger, 0, [(0.2, True, None)])
    put(kit, ledger, 1, [(0.6, True, None)])
    row = metric_table(load(ledger, [first])).iloc[0]
    assert (row["mean"], row["mean_n"]) == (pytest.approx(0.2), 1)
    assert np.isnan(row["chance"])  # its explain cell is not among the named ones


def test_chance_is_that_of_what_each_method_scores(kit: Any) -> None:
    ledger = kit.FakeLedger()
    for method, unit, chance in (("saliency", "piece", 0.3), ("lime", "word", 0.2)):
        scored = kit.ScoreCell(kit.ExplainCell(kit.train_cell("demo", "BERT-C", 0), method, kit.NoOptions(), None))
        table = kit.score_table([(0.2, True, None), (0.4, True, None)])
        ledger.put(scored, table.append_column("unit", [[unit] * 2]).append_column("chance", [[chance] * 2]))
    frames = load(ledger)
    table = metric_table(frames).set_index("method")
    assert table["chance"].to_dict() == {"saliency": pytest.approx(0.3), "lime": pytest.approx(0.2)}
    rows = {row[0]: row[1] for row in mass_views(metric_table(frames), accuracy_table(frames))[0].rows}
    assert rows["chance (share of marked pieces)"] == "0.300"
    assert rows["chance (share of marked words)"] == "0.200"


def test_accuracy_takes_the_saved_epoch(kit: Any) -> None:
    ledger = kit.FakeLedger()
    for seed, values in ((0, [0.5, 0.9, 0.7]), (1, [0.5, 0.7, 0.6])):
        ledger.put(kit.train_cell("binary_gender_all", "BERT-C", seed), kit.history_table(values))
    put(kit, ledger, 0, [(0.2, True, None), (0.2, False, None)])
    row = accuracy_table(load(ledger)).iloc[0]
    assert (row["test_accuracy"], row["test_accuracy_n"]) == (pytest.approx(0.8), 2)
    assert (row["explained_accuracy"], row["explained_accuracy_n"]) == (pytest.approx(0.5), 1)


def test_an_all_null_column_is_a_gap(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 0, [(None, True, "zero_attribution")])
    frames = load(ledger)
    view = mass_views(metric_table(frames), accuracy_table(frames))[0]
    assert view.rows[0] == ("Saliency", "– (n=0)")
    assert any("zero_attribution: 1" in note for note in view.findings)


def test_nothing_gives_empty_tables(empty_ledger: Any) -> None:
    frames = load(empty_ledger)
    for table in (metric_table(frames), accuracy_table(frames), metric_by_seed(frames.score, frames.truth_share)):
        assert isinstance(table, pd.DataFrame)
        assert table.empty
    assert mass_views(metric_table(frames), accuracy_table(frames)) == []


def test_rules_for_correct_rows_by_hand() -> None:
    rows = [("A", 0, 7, True), ("A", 0, 7, False), ("A", 0, 8, True), ("A", 0, 8, True),
            ("B", 0, 7, True), ("B", 0, 7, True), ("B", 0, 8, True), ("B", 0, 8, True)]  # fmt: skip
    score = pd.DataFrame(rows, columns=["paradigm", "seed", "sentence_idx", "correct"])
    score = score.assign(dataset="d", protocol="p", encoder="e", settings="{}", method="m")
    assert counted_rows(score, "none").tolist() == [True] * 8
    assert counted_rows(score, "per_model_row").tolist() == [True, False, *[True] * 6]
    assert counted_rows(score, "per_model_sentence").tolist() == [False, False, *[True] * 6]
    assert counted_rows(score, "all_models_sentence").tolist() == [False, False, True, True] * 2
    with pytest.raises(UserError, match="per_model_row"):
        counted_rows(score, "per_model_rows")  # type: ignore[arg-type]
