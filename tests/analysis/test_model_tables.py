"""Tables 3 to 5 of the counterfactual paper, the signed-rank tests and the other measures, on hand-made rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from analysis.cfe import frames as cfe_frames
from analysis.cfe.model_tables import MACRO, base_models, descriptor_table
from analysis.cfe.runtimes import runtime_table
from analysis.cfe.tables import table_6
from analysis.geco import frames as geco_frames
from analysis.geco.statistics.signed_rank import signed_rank, signed_rank_table
from analysis.geco.tables import ranking_table


def model_row(**values: Any) -> pa.Table:
    row = {"change_id": None, "family": None, "level": None, "seed": 1, "draw": None, "probability_mae": 0.0,
           "hard_disagreement": 0.0, "balanced_accuracy": 0.9, "balanced_accuracy_drop": 0.0}  # fmt: skip
    return pa.Table.from_pylist([row | values])


def test_base_models_and_descriptors_by_hand(kit: Any) -> None:
    ledger = kit.FakeLedger()
    for dataset, shift in (("diabetes", 0.0), ("heloc", 0.2)):
        for seed, adverse in ((2026, 10), (2027, 14)):
            base = kit.BaseCell(dataset, "0" * 8, seed, "paper")
            ledger.put(base, model_row(balanced_accuracy=0.7 + shift + seed % 2 / 10, adverse_test_rows=adverse))
            for variant, disagreement in ((0, 0.1), (1, 0.3)):
                values = {"family": "seed", "level": "l", "hard_disagreement": disagreement + shift}
                ledger.put(kit.VariantCell(base, "seed", variant), model_row(draw=f"l:{seed + variant}", **values))
    frames = cfe_frames.load(ledger)
    bases = base_models(frames.models).set_index("dataset").loc["diabetes"]
    assert (bases["models"], bases["adverse_total"], bases["adverse_min"], bases["adverse_max"]) == (2, 24, 10, 14)
    assert bases["balanced_accuracy_mean"] == pytest.approx(0.75)
    table = descriptor_table(frames.models).set_index("dataset")
    assert table.loc["diabetes", "hard_disagreement"] == pytest.approx(0.2)
    assert table.loc["diabetes", "hard_disagreement_sd"] == pytest.approx(np.std([0.1, 0.3] * 2, ddof=1))
    assert table.loc[MACRO, "hard_disagreement"] == pytest.approx(0.3)
    assert (table.loc["diabetes", "models"], table.loc[MACRO, "models"]) == (4, 8)


def test_the_bootstrap_family_can_be_left_out(kit: Any) -> None:
    ledger = kit.FakeLedger()
    base = kit.BaseCell("diabetes", "0" * 8, 2026, "paper")
    cell = kit.CounterfactualCell(base, "betarce", kit.NoOptions(), "paper")
    ledger.put(cell, kit.counterfactual_table(["found"], [1.0]))
    for family, valid in (("bootstrap", [True, True]), ("seed", [True, False])):
        variants = tuple(kit.VariantCell(base, family, n) for n in range(2))
        ledger.put(kit.ValidityCell(cell, family, variants), kit.validity_table(["found"], [valid], [[True, True]]))
    row = table_6(cfe_frames.load(ledger)).iloc[0]
    assert row["empirical_robustness"] == pytest.approx(0.75)
    assert row["empirical_robustness_no_bootstrap"] == pytest.approx(0.5)


def test_runtimes_come_from_the_records(kit: Any) -> None:
    ledger = kit.FakeLedger()
    for dataset, seconds in (("diabetes", [1.0, 2.0]), ("heloc", [3.0, 10.0])):
        cell = kit.CounterfactualCell(kit.BaseCell(dataset, "0", 2026, "paper"), "rbr", kit.NoOptions(), "paper")
        ledger.put(cell, kit.counterfactual_table(["found", "error"], [1.0, None]))
        batches = [{"requests": 2, "seconds": total} for total in seconds]
        ledger.cells[cell.id][0].info.update(batches=batches, set_up_seconds=seconds[0])
    row = runtime_table(ledger).iloc[0]
    assert (row["requests"], row["batches"], row["mean"]) == (8, 4, 2.0)
    assert not {"sd", "median", "p90", "max"} & set(row.index)  # a batch's time says nothing of its requests' spread
    assert (row["set_ups"], row["set_up_mean"]) == (2, 2.0)
    assert runtime_table(ledger, []).empty


def test_signed_rank_against_a_known_value() -> None:
    assert signed_rank(np.array([1.0, 2.0, 3.0, 4.0, 5.0])) == pytest.approx(2 / 2**5)  # exact: all of one sign
    assert np.isnan(signed_rank(np.zeros(3)))


def test_sentences_not_rows_are_the_unit_of_the_test(kit: Any) -> None:
    ledger = kit.FakeLedger()
    truth, chance = [[1, 0, 0, 0]] * 5, 0.25
    for paradigm, seeds, value in (("BERT-ZS", (None,), 0.3), ("BERT-C", (0, 1), 0.6)):
        for seed in seeds:
            explained = kit.ExplainCell(
                kit.train_cell("binary_gender_all", paradigm, seed), "lime", kit.NoOptions(), None
            )
            ledger.put(explained, kit.explain_table(truth, [True] * 5, np.full(5, 0.5)))
            ledger.put(
                kit.ScoreCell(explained),
                kit.score_table([(value + n / 100, True, None) for n in range(4)] + [(0.0, True, None)]),
            )
    table = signed_rank_table(geco_frames.load(ledger)).set_index(["paradigm", "against"])
    row = table.loc[("BERT-C", "chance")]
    assert (row["sentences"], row["rows"]) == (5, 10)
    assert row["median"] == pytest.approx(0.61 - chance)
    relative = table.loc[("BERT-C", "zero_shot")]
    assert (relative["sentences"], relative["rows"], relative["rows_undefined"]) == (4, 8, 2)  # 0 has no logarithm
    assert relative["p"] == pytest.approx(2 / 2**4)
    assert ("BERT-ZS", "zero_shot") not in table.index


def test_other_measures_have_their_own_reasons(kit: Any) -> None:
    ledger = kit.FakeLedger()
    scored = kit.ScoreCell(
        kit.ExplainCell(kit.train_cell("binary_gender_all", "BERT-C", 0), "lime", kit.NoOptions(), None)
    )
    table = kit.score_table([(0.5, True, None), (0.7, True, None)])
    table = table.append_column("roc_auc", pa.array([0.9, None])).append_column(
        "ranking_reason", pa.array([None, "full_truth"])
    )
    ledger.put(scored, table)
    row = ranking_table(geco_frames.load(ledger)).iloc[0]
    assert (row["metric"], row["mean"], row["rows"], row["undefined"]) == ("roc_auc", 0.9, 2, 1)
    assert row["reasons"] == "full_truth: 1"


def test_nothing_gives_empty_tables(empty_ledger: Any) -> None:
    models, frames = cfe_frames.load(empty_ledger).models, geco_frames.load(empty_ledger)
    tables = (base_models(models), descriptor_table(models), signed_rank_table(frames),
              ranking_table(frames), runtime_table(empty_ledger))  # fmt: skip
    assert all(isinstance(table, pd.DataFrame) and table.empty for table in tables)
