"""The counterfactual metrics with their exact denominators, on requests counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from analysis.cfe.frames import load
from analysis.cfe.tables import distinct_draws, family_table, table_6, table_by_seed
from analysis.cfe.views import family_views, table_6_views

STATUSES = ["found", "found", "base_invalid", "not_found", "error"]


def put(
    kit: Any,
    ledger: Any,
    base_seed: int,
    statuses: list[str],
    valid: dict[str, list[list[bool] | None]],
    distances: list[float | None],
    method: str = "kdtree",
) -> list[str]:
    base = kit.BaseCell("diabetes", "0" * 8, base_seed, "paper")
    cell = kit.CounterfactualCell(base, method, kit.NoOptions(), "paper")
    ledger.put(cell, kit.counterfactual_table(statuses, distances))
    ids = [cell.id]
    for family, lists in valid.items():
        size = max(len(entry) for entry in lists if entry is not None) if any(lists) else 2
        variants = tuple(kit.VariantCell(base, family, n) for n in range(size))
        tested = kit.ValidityCell(cell, family, variants)
        adverse = [[True] * (size - 1) + [False] for _ in statuses]
        ledger.put(tested, kit.validity_table(statuses, lists, adverse))
        ids.append(tested.id)
    return ids


def test_each_metric_by_hand(kit: Any) -> None:
    ledger = kit.FakeLedger()
    valid: dict[str, list[list[bool] | None]] = {
        "seed": [[True, False], [True, True], None, None, None],
        "deletion": [[False, False], [True, False], None, None, None],
    }
    put(kit, ledger, 2026, STATUSES, valid, [1.0, 2.0, None, None, None])
    row = table_by_seed(load(ledger)).iloc[0]
    assert row["coverage"] == pytest.approx(3 / 5)
    assert row["base_validity"] == pytest.approx(2 / 3)
    assert row["valid_share"] == pytest.approx(2 / 5)
    assert row["empirical_robustness"] == pytest.approx(4 / 8)
    assert row["end_to_end"] == pytest.approx(4 / 20)
    assert row["end_to_end"] == pytest.approx(row["coverage"] * row["base_validity"] * row["empirical_robustness"])
    assert row["distance"] == pytest.approx(1.5)
    assert row["conditional_survival"] == pytest.approx(3 / 4)  # the last variant accepts the factual already
    assert (row["variants"], row["error"], row["not_found"]) == (4, 1, 1)
    families = family_table(load(ledger)).set_index("family")
    assert families.loc["seed", "empirical_robustness"] == pytest.approx(3 / 4)
    assert families.loc["deletion", "end_to_end"] == pytest.approx(1 / 10)


def test_seed_means_and_pooled_values_differ_when_seeds_are_unequal(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 2026, ["found"], {"seed": [[True, True]]}, [1.0])
    put(kit, ledger, 2027, ["found"] * 3, {"seed": [[True, False], [False, False], [False, False]]}, [2.0] * 3)
    row = table_6(load(ledger)).iloc[0]
    assert row["empirical_robustness"] == pytest.approx((1 + 1 / 6) / 2)
    assert row["empirical_robustness_sd"] == pytest.approx(np.std([1, 1 / 6], ddof=1))
    assert row["empirical_robustness_pooled"] == pytest.approx(3 / 8)
    assert row["distance"] == pytest.approx(1.5)
    assert row["distance_pooled"] == pytest.approx(7 / 4)
    assert (row["empirical_robustness_n"], row["requests"]) == (2, 4)
    family = family_table(load(ledger)).iloc[0]
    assert (family["empirical_robustness_min"], family["empirical_robustness_max"]) == (pytest.approx(1 / 6), 1.0)
    assert family["empirical_robustness_pooled"] == pytest.approx(3 / 8)


def test_no_answer_means_undefined_robustness_and_zero_end_to_end(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 2026, ["not_found", "budget"], {"seed": [None, None]}, [None, None])
    frames = load(ledger)
    row = table_6(frames).iloc[0]
    assert (row["coverage"], row["end_to_end"], row["empirical_robustness_n"]) == (0, 0, 0)
    assert np.isnan(row["empirical_robustness"])
    assert np.isnan(row["base_validity"])
    text = table_6_views(table_6(frames))[0].rows[0]
    assert text[:4] == ("KD-tree", "0.0 (n=1)", "– (n=0)", "– (n=0)")
    assert family_views(family_table(frames))[0].rows[0] == ("KD-tree", "–")


def test_generation_without_validity_yet_shows_gaps(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 2026, ["found"], {}, [1.0])
    put(kit, ledger, 2027, ["found"], {"seed": [[True]]}, [1.0])
    row = table_6(load(ledger)).iloc[0]
    assert (row["coverage_n"], row["empirical_robustness_n"], row["variants"]) == (2, 1, "0-1")


def test_a_smaller_bank_of_another_grid_is_not_counted_twice(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 2026, ["found"], {"seed": [[False]]}, [1.0])
    ids = put(kit, ledger, 2026, ["found"], {"seed": [[True, True]]}, [1.0])
    row = table_6(load(ledger)).iloc[0]
    assert (row["empirical_robustness"], row["requests"], row["variants"]) == (1.0, 1, "2")
    assert len(ids) == 2


def test_certified_coverage_is_null_for_methods_without_certificates(kit: Any) -> None:

    ledger = kit.FakeLedger()
    base = kit.BaseCell("diabetes", "0" * 8, 2026, "paper")
    ledger.put(
        kit.CounterfactualCell(base, "kdtree", kit.NoOptions(), "paper"), kit.counterfactual_table(["found"], [1.0])
    )
    certified = kit.counterfactual_table(["found", "not_found"], [1.0, None])
    certified = certified.append_column("certified", pa.array([True, False]))
    ledger.put(kit.CounterfactualCell(base, "apas", kit.NoOptions(), "paper"), certified)
    table = table_6(load(ledger)).set_index("method")
    assert table.loc["apas", "certified_coverage"] == pytest.approx(0.5)
    assert np.isnan(table.loc["kdtree", "certified_coverage"])


def test_the_share_that_keeps_the_constraints_is_said_apart_and_only_where_there_are_some(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 2026, ["found"], {}, [1.0])
    assert "constraints_kept" not in table_6(load(ledger)).columns
    base = kit.BaseCell("diabetes", "0" * 8, 2026, "paper")
    answers = kit.counterfactual_table(["found", "base_invalid", "not_found"], [1.0, None, None])
    flags = pa.array([True, False, None])
    ledger.put(
        kit.CounterfactualCell(base, "rnce", kit.NoOptions(), "paper"), answers.append_column("constraints_kept", flags)
    )
    table = table_6(load(ledger)).set_index("method")
    assert table.loc["rnce", "constraints_kept"] == pytest.approx(0.5)
    (view,) = table_6_views(table.reset_index())
    assert any("keep the constraints of the card (nothing is repaired): RNCE 50.0 %." in note for note in view.notes)


def test_a_base_model_without_any_certificate_counts_as_none_certified(kit: Any) -> None:

    ledger = kit.FakeLedger()
    for base_seed, flags in ((2026, [True, None]), (2027, [None, None]), (2028, None)):
        base = kit.BaseCell("diabetes", "0" * 8, base_seed, "paper")
        table = kit.counterfactual_table(["not_found"] * (2 if flags else 0), [None] * (2 if flags else 0))
        if flags:
            table = table.append_column("certified", pa.array(flags, pa.bool_()))
        ledger.put(kit.CounterfactualCell(base, "apas", kit.NoOptions(), "paper"), table)
        ledger.put(kit.CounterfactualCell(base, "kdtree", kit.NoOptions(), "paper"), table.select(range(4)))
    frames = load(ledger)
    per_seed = table_by_seed(frames)
    apas, other = (per_seed[per_seed["method"] == name].set_index("base_seed") for name in ("apas", "kdtree"))
    assert apas["certified_coverage"].tolist()[:2] == [0.5, 0.0]
    assert np.isnan(apas.loc[2028, "certified_coverage"])
    assert other["certified_coverage"].isna().all()
    row = table_6(frames).set_index("method").loc["apas"]
    assert (row["certified_coverage"], row["certified_coverage_n"]) == (0.25, 2)
    assert row["certified_coverage_pooled"] == pytest.approx(1 / 4)


def test_a_base_model_without_adverse_rows_is_a_seed_with_no_requests(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 2026, ["found"], {"seed": [[True, False]]}, [1.0])
    put(kit, ledger, 2027, [], {"seed": []}, [])
    frames = load(ledger)
    per_seed = table_by_seed(frames).set_index("base_seed")
    assert per_seed.loc[2027, ["requests", "generated", "error"]].tolist() == [0, 0, 0]
    rates = ["coverage", "base_validity", "empirical_robustness", "end_to_end", "distance", "valid_share"]
    assert per_seed.loc[2027, rates].isna().all()
    row = table_6(frames).iloc[0]
    assert (row["seeds"], row["coverage_n"], row["empirical_robustness_n"]) == (2, 1, 1)
    assert (row["coverage"], row["empirical_robustness"], row["requests"], row["variants"]) == (1.0, 0.5, 1, "2")
    assert table_6_views(table_6(frames))[0].rows


def test_only_base_models_without_adverse_rows(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 2027, [], {"seed": []}, [])
    row = table_6(load(ledger)).iloc[0]
    assert (row["seeds"], row["coverage_n"], row["requests"], row["variants"]) == (1, 0, 0, "0")
    assert table_6_views(table_6(load(ledger)))[0].rows


def test_distinct_draws_of_consecutive_seeds(full_ledger: Any) -> None:
    draws = distinct_draws(load(full_ledger).models).set_index(["dataset", "family"])
    assert tuple(draws.loc[("breast_cancer", "seed"), ["models", "draws"]]) == (125, 29)
    assert tuple(draws.loc[("breast_cancer", "architecture"), ["models", "draws"]]) == (125, 125)


def test_an_unknown_status_is_refused(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 2026, ["lost"], {}, [None])
    with pytest.raises(ValueError, match="lost"):
        table_6(load(ledger))


def test_nothing_gives_empty_tables(empty_ledger: Any) -> None:
    frames = load(empty_ledger)
    assert table_6(frames).empty
    assert family_table(frames).empty
    assert table_6_views(table_6(frames)) == []
    assert family_views(family_table(frames)) == []
