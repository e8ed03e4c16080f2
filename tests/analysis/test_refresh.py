"""A report that stands is left alone, and what somebody did to its files is put right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.refresh import refresh_report
from geco_ray.ledger import Ledger


@pytest.fixture(scope="module")
def refresh(kit: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Writes the report of one finished cell, unless it stands."""
    ledger = Ledger(tmp_path_factory.mktemp("runs"))
    base = kit.BaseCell("breast_cancer", "0" * 8, 2026, "paper")
    cell = kit.CounterfactualCell(base, "kdtree", kit.NoOptions(), "paper")
    ledger.put(cell, kit.counterfactual_table(["found"], [1.0]))
    return lambda: refresh_report(ledger, [cell], "g", None)


def times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_a_report_that_stands_is_not_touched(refresh: Callable[[], Path]) -> None:
    before = times(refresh())
    assert times(refresh()) == before


DAMAGE: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "changed": lambda path: path.write_bytes(path.read_bytes() + b" "),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("file", ["index.html", "tables.md", "cells.sha256"])
def test_a_file_that_is_missing_or_changed_is_written_again_and_no_other(
    damage: str, file: str, refresh: Callable[[], Path]
) -> None:
    folder = refresh()
    content, before = (folder / file).read_bytes(), times(folder)
    DAMAGE[damage](folder / file)
    assert refresh() == folder
    assert (folder / file).read_bytes() == content
    assert {name for name, changed in times(folder).items() if before.get(name) != changed} == {file}
