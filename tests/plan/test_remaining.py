"""A plan compares a grid with the ledger: what is asked for, what is done, what is left and why."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from geco_ray.cells import Cell
from geco_ray.experiments.cfe.cells import BaseCell, CounterfactualCell, ValidityCell, VariantCell
from geco_ray.ledger import Ledger
from geco_ray.plan.remaining import make_plan
from geco_ray.registry import NoOptions

TABLE = pa.table({"x": [1]})


def grid() -> list[Cell]:
    """Two base models, three variants each, one method."""
    cells: list[Cell] = []
    for seed in (1, 2):
        base = BaseCell("bc", "d", seed, "paper")
        variants = tuple(VariantCell(base, "seed", number) for number in range(3))
        found = CounterfactualCell(base, "kdtree", NoOptions(), "paper")
        cells += [base, *variants, found, ValidityCell(found, "seed", variants)]
    return cells


def test_an_empty_ledger_leaves_everything(tmp_path: Path) -> None:
    plan = make_plan(grid(), Ledger(tmp_path / "none"), 25)
    assert [stage.stage.name for stage in plan.stages] == ["models", "counterfactuals", "validity"]
    assert (plan.total, plan.left) == (12, 12)
    assert plan.stages[0].row() == {
        "stage": "models", "cells": 8, "of which": "2 base, 6 variant", "trials": 3, "runs as": "trials",
        "done": 0, "left": 8, "why": "8 not started",
    }  # fmt: skip
    assert [stage.row()["runs as"] for stage in plan.stages] == ["trials", "trials", "actors"]
    assert plan.stages[2].trials == 0
    assert plan.damaged() == {"models": [], "counterfactuals": [], "validity": []}
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(("pack", "trials"), [(1, 8), (2, 5), (3, 3), (25, 3)])
def test_trials_are_packs_and_do_not_shrink_with_what_is_done(pack: int, trials: int, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert make_plan(grid(), ledger, pack).stages[0].trials == trials
    ledger.put(grid()[0], TABLE)
    assert make_plan(grid(), ledger, pack).stages[0].trials == trials


def test_what_is_done_is_not_left(tmp_path: Path) -> None:
    ledger, cells = Ledger(tmp_path), grid()
    for cell in cells[:4]:
        ledger.put(cell, TABLE)
    plan = make_plan(cells, ledger, 25)
    assert plan.left == 8
    assert {cell.id for cell in plan.stages[0].left} == {cell.id for cell in cells[6:10]}
    for cell in cells:
        ledger.put(cell, TABLE)
    assert make_plan(cells, ledger, 25).left == 0
    assert make_plan(cells, ledger, 25).stages[0].row()["why"] == ""


def test_cells_of_other_grids_in_the_same_folder_do_not_count(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.put(BaseCell("other", "d", 1, "paper"), TABLE)
    ledger.fail(BaseCell("third", "d", 1, "paper"), ValueError("x"))
    plan = make_plan(grid(), ledger, 25)
    assert (plan.total, plan.left) == (12, 12)
    assert set(plan.stages[0].reasons.values()) == {"not started"}


def test_an_empty_grid_has_an_empty_plan(tmp_path: Path) -> None:
    plan = make_plan([], Ledger(tmp_path), 25)
    assert (plan.stages, plan.total, plan.left) == ((), 0, 0)
