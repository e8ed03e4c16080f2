"""What a page says of the run itself: its card, how it went, with what it was computed."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.about.card import card, cells_view
from analysis.about.provenance import provenance_view
from analysis.missing import Group
from analysis.report import read_numbers


@pytest.fixture(scope="module")
def ledger(kit: Any) -> Any:
    """Two benchmarks; one record says with what it was computed."""
    ledger = kit.FakeLedger()
    kit.fill_geco(ledger, ("demo_binary_all",), ("BERT-C",), ("saliency",), seeds=2, sentences=18)
    kit.fill_cfe(ledger, ("breast_cancer",), ("kdtree", "roar_lime"), ("seed",), (2026,), 3, 20)
    record = ledger.records("counterfactuals")[0]
    record.info |= {
        "python": "3.11.7",
        "packages": {"numpy": "2.4.6"},
        "seconds": 2.0,
        "finished": "2026-12-01T07:36:01",
    }
    return ledger


def test_a_card_says_what_was_run(ledger: Any) -> None:
    found = {("models", "d", ""): Group(planned=3, done=1, failed=1)}
    said = card(read_numbers(ledger), found)
    assert said[0] == ("Cells", "1 of 3 done, 1 failed, 1 left")
    assert ("Methods", "KD-tree, ROAR-LIME") in said or ("Methods", "ROAR-LIME, KD-tree") in said
    assert ("Seeds", "2026") in said


def test_cells_are_counted_by_stage() -> None:
    groups = {("models", name, ""): Group(planned=2, done=1) for name in ("a", "b")}
    view = cells_view(groups)
    assert view is not None
    assert view.rows == (("models", "4", "2", "0", "2"),)
    assert cells_view({}) is None


def test_provenance_is_of_the_records(ledger: Any, kit: Any) -> None:
    view = provenance_view("g", read_numbers(ledger))
    assert view is not None
    assert ("Python", "3.11.7", "1") in view.rows
    assert ("numpy (package)", "2.4.6", "1") in view.rows
    assert ("Wall time", "2 seconds", "1") in view.rows
    assert provenance_view("g", read_numbers(kit.FakeLedger())) is None


def test_health_counts_undefined_values_and_requests_without_an_answer(ledger: Any) -> None:
    views = {view.key: view for each in read_numbers(ledger) for view in each.topic.health(each)}
    (lost,) = views["undefined"].rows
    assert lost[-2:] == ("zero attribution", "4 of 36")
    requests = {row[0]: row for row in views["answers"].rows}
    assert int(requests["ROAR-LIME"][3]) + int(requests["ROAR-LIME"][4]) == 20
    assert requests["KD-tree"][-1] == "–"
