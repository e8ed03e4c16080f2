"""How near a counterfactual is to people that exist, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from geco_ray.cfe.constraints.plausibility import Rows, plausibility, quality_table
from geco_ray.cfe.data.categories import Group
from geco_ray.cfe.generation import generate
from geco_ray.cfe.methods.base import METHODS, GenerationTask
from geco_ray.cfe.survival.rows import encoded


def line(*values: float) -> Rows:
    return Rows(np.array(values, dtype=np.float64)[:, None], np.empty((len(values), 0), dtype=np.int64))


def test_nearest_and_relative_distance_by_hand() -> None:
    nearest, relative = plausibility(line(0.0, 100.0), line(0.0, 1.0, 2.0))
    assert nearest.tolist() == [1.0, 99.0]
    # Among the others: 1.5, 1, 1.5.
    assert relative.tolist() == pytest.approx([1.0 / (4 / 3), 99.0 / (4 / 3)])


def test_what_cannot_be_compared_is_null() -> None:
    assert np.isnan(plausibility(line(1.0), line())[0]).all()
    assert np.isnan(plausibility(line(1.0), line(3.0))[1]).all()
    assert np.isnan(plausibility(line(1.0), line(3.0, 3.0))[1]).all()


def test_another_category_is_one_of_the_columns() -> None:
    train = pd.DataFrame({"age": [0.0, 2.0, 4.0], "job": ["a", "b", "a"]})
    rows = encoded(train, train)
    assert rows.distances(rows, 0).tolist() == [0.0, (1 + 1) / 2, (2 + 0) / 2]
    assert encoded(train.assign(job="new"), train).codes.ravel().tolist() == [-1, -1, -1]


def test_a_generated_table_is_measured_row_by_row(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    entry = METHODS.get("kdtree")
    made = generate(entry.target(toy_task, entry.parse_options()), toy_task, toy_factuals[:3], range(3), range(3))
    table = quality_table(toy_task, made)
    assert table["changed_columns"].to_pylist() == [4, 4, 4]
    # The answer is a training row itself, so it is no further than its neighbours.
    assert all(value < 1.5 for value in table["relative_distance"].to_pylist())
    grouped = quality_table(replace(toy_task, groups=(Group("job", 0, 3),)), made)
    assert grouped["changed_columns"].to_pylist() == [2, 2, 2]
