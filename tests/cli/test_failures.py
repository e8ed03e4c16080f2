"""What `geco-ray failures` tells: faults by kind and place, the cells of each, one traceback to read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from geco_ray.cells import Cell
from geco_ray.cli.output import PlainConsole
from geco_ray.cli.state.failures import failed_cells, show_failures
from geco_ray.experiments.cfe.cells import BaseCell, VariantCell
from geco_ray.ledger import Ledger
from geco_ray.plan.remaining import make_plan

CELLS: list[Cell] = [VariantCell(BaseCell("compas", "f" * 8, 1, "paper"), "seed", number) for number in range(14)]


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Twelve cells that failed at one place, one of them twice, one that failed by another fault, one not begun."""
    made = Ledger(tmp_path / "runs")
    for cell in [*CELLS[:12], CELLS[0]]:
        made.fail(cell, raised(ValueError(f"no {cell.id} [/red]")))
    made.fail(CELLS[12], RuntimeError("its worker died"))
    return made


def told(ledger: Ledger, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> str:
    failed = failed_cells(make_plan(CELLS, ledger), ledger)
    show_failures(failed, ledger, PlainConsole(width=200), as_json)
    return capsys.readouterr().out


def test_cells_of_one_fault_stand_together_with_one_traceback(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = told(ledger, capsys).splitlines()
    assert lines[0].startswith("12 cells: ValueError at ")
    assert lines[0].endswith(" in raised")
    assert lines[1].startswith(f"  {CELLS[0].title} (attempts: 2, the last on ")
    assert lines[11] == "  and 2 more (--json names all)"
    assert "1 cell: RuntimeError" in lines
    assert lines.count("Traceback (most recent call last):") == 1
    assert lines[-1] == "13 cells failed"
    assert (path := next(line for line in lines if ".json" in line and "all of" in line).split(": ")[1])
    assert json.loads(Path(path).read_text())["id"] == CELLS[0].id


def test_as_json_every_failure_is_there_whole(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    failures = json.loads(told(ledger, capsys, as_json=True))
    assert list(failures) == [cell.title for cell in CELLS[:13]]
    assert "Traceback" in failures[CELLS[0].title]["traceback"]


def test_where_nothing_failed_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(Ledger(tmp_path), capsys) == "0 cells failed\n"
