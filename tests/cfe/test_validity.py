"""Survival: what the changed models decide about counterfactuals and factuals, by hand and against the models."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from geco_ray.cfe import generation
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.model_stack import StackedModels
from geco_ray.cfe.validity import SCHEMA, validity_table


def threshold(at: float) -> Mlp:
    """Favours x >= ``at``."""
    return Mlp((np.ones((1, 1), dtype=np.float32),), (np.array([-at], dtype=np.float32),))


@pytest.fixture
def models() -> StackedModels:
    """Three changed models that draw the line at 0, 1 and 2."""
    return StackedModels([threshold(0), threshold(1), threshold(2)])


def made(*rows: tuple[str, float, float | None]) -> pa.Table:
    """A counterfactuals table of (status, factual, counterfactual)."""
    blank = {"dataset_row_id": 0, "seconds": 0.0, "batch": 1}
    return pa.Table.from_pylist(
        [
            blank | {"factual_id": i, "status": s, "factual": [x], "counterfactual": None if y is None else [y]}
            for i, (s, x, y) in enumerate(rows)
        ],
        schema=generation.SCHEMA,
    )


def test_survival_by_hand(models: StackedModels) -> None:
    table = validity_table(models, made(("found", -1, 1.5), ("not_found", 0.5, None), ("base_invalid", 3, 4)))
    assert table.schema == SCHEMA
    assert table["factual_id"].to_pylist() == [0, 1, 2]
    assert table["status"].to_pylist() == ["found", "not_found", "base_invalid"]
    assert table["base_valid"].to_pylist() == [True, False, False]
    assert table["variant_valid"].to_pylist() == [[True, True, False], None, None]
    assert table["factual_still_adverse"].to_pylist() == [[True] * 3, [False, True, True], [False] * 3]


@pytest.mark.parametrize("rows", [[], [("error", 0.5, None)]])
def test_nothing_found_is_nothing_to_survive(models: StackedModels, rows: list[tuple[str, float, None]]) -> None:
    table = validity_table(models, made(*rows))
    assert table.schema == SCHEMA
    assert table["variant_valid"].to_pylist() == [None] * len(rows)


def test_it_asks_the_models_that_it_is_given(toy_model: Mlp, fit_again: Callable[[int], Mlp]) -> None:
    networks = [toy_model, fit_again(1), fit_again(2)]
    rng = np.random.default_rng(0)
    points = rng.standard_normal((40, 4))
    rows = [{"factual_id": i, "status": "found", "factual": list(x), "counterfactual": list(x + 1)}
            for i, x in enumerate(points)]  # fmt: skip
    table = validity_table(StackedModels(networks), pa.Table.from_pylist(rows))
    survived = np.array(table["variant_valid"].to_pylist())
    np.testing.assert_array_equal(survived, np.stack([one.favourable(points + 1) for one in networks], axis=1))
    assert 0 < survived.mean() < 1


def test_the_page_shows_the_line_as_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "cfe." in block]
    exec(compile("\n".join(blocks), "datasets.md", "exec"), {})
    last = dict(line.rsplit(" ", 1) for line in capsys.readouterr().out.splitlines()[-5:])
    assert last["Coverage"] == "1.0"
    assert 0.9 < float(last["Empirical robustness"]) == float(last["End-to-end robustness"]) <= 1
