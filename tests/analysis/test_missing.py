"""What a page says of cells that are not there: every planned method is named, with its reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analysis.missing import groups, missing_view
from analysis.refresh import refresh_report
from analysis.report import write_report
from geco_ray.ledger import Ledger


def planned(kit: Any) -> list[Any]:
    """Three methods on one base model."""
    base = kit.BaseCell("breast_cancer", "0" * 8, 2026, "paper")
    return [kit.CounterfactualCell(base, name, kit.NoOptions(), "paper") for name in ("kdtree", "rnce", "wachter")]


def test_failed_and_open_cells_are_named_with_reasons(kit: Any, tmp_path: Path) -> None:
    ledger, cells = Ledger(tmp_path / "runs"), planned(kit)
    ledger.put(cells[0], kit.counterfactual_table(["found"], [1.0]))
    ledger.fail(cells[1], RuntimeError("the solver found no bound\nsecond line"))
    page = (refresh_report(ledger, cells, "g", None) / "index.html").read_text("utf-8")
    assert "What is missing" in page
    assert "2 of 3 planned cells have no result" in page
    assert "the solver found no bound" in page
    assert "second line" not in page
    assert "Wachter" in page
    assert "not yet computed" in page


def test_another_failure_writes_the_report_again(kit: Any, tmp_path: Path) -> None:
    ledger, cells = Ledger(tmp_path / "runs"), planned(kit)
    ledger.put(cells[0], kit.counterfactual_table(["found"], [1.0]))
    page = refresh_report(ledger, cells, "g", None) / "index.html"
    before = page.read_text("utf-8")
    ledger.fail(cells[1], RuntimeError("later"))
    refresh_report(ledger, cells, "g", None)
    assert page.read_text("utf-8") != before


def test_a_finished_grid_lacks_nothing(kit: Any, tmp_path: Path) -> None:
    ledger = kit.FakeLedger()
    cells = planned(kit)
    for cell in cells:
        ledger.put(cell, kit.counterfactual_table(["found"], [1.0]))
    assert missing_view(groups(ledger, cells), []) is None
    write_report(ledger, None, tmp_path, "whole", planned=cells)
    assert "What is missing" not in (tmp_path / "index.html").read_text("utf-8")
