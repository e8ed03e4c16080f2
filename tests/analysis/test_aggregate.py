"""Seed-level statistics against hand-computed values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis.aggregate import over_seeds, ratio, reasons
from analysis.cfe.tables import bootstrap_seed
from analysis.intervals import Interval, bootstrap


def test_over_seeds_has_ddof_1_and_counts_what_is_there() -> None:
    frame = pd.DataFrame({"m": ["a", "a", "a", "b"], "seed": [0, 1, 2, 0], "v": [1.0, 3.0, None, 5.0]})
    table = over_seeds(frame, ["m"], ["v"]).set_index("m")
    assert table.loc["a", "v"] == 2.0
    assert table.loc["a", "v_sd"] == pytest.approx(2**0.5)
    assert (table.loc["a", "seeds"], table.loc["a", "v_n"]) == (3, 2)
    assert np.isnan(table.loc["b", "v_sd"])
    assert table.loc["b", "v_n"] == 1


def test_over_seeds_keeps_groups_with_null_keys() -> None:
    frame = pd.DataFrame({"m": ["a", None], "v": [1.0, 2.0]})
    assert over_seeds(frame, ["m"], ["v"])["v"].tolist() == [1.0, 2.0]


def test_over_seeds_of_nothing_has_the_columns() -> None:
    table = over_seeds(pd.DataFrame(columns=["m", "v"]), ["m"], ["v"])
    assert list(table.columns) == ["m", "seeds", "v", "v_sd", "v_n"]
    assert table.empty


def test_ratio_is_null_where_the_denominator_is_zero() -> None:
    values = ratio(pd.Series([1, 0, 3]), pd.Series([2, 0, 0]))
    assert values[0] == 0.5
    assert values[1:].isna().all()


def test_reasons_count_rows_without_a_value() -> None:
    frame = pd.DataFrame({"m": ["a"] * 4, "v": [None, None, 1.0, None], "reason": ["x", "x", None, None]})
    assert reasons(frame, ["m"], "v", "reason").tolist() == ["no reason given: 1, x: 2"]


def test_bootstrap_follows_the_authors_index_matrix() -> None:
    values = np.array([0.1, 0.4, 0.2, 0.9, 0.5])
    indices = np.random.default_rng(2026 + 1).integers(0, 5, size=(10_000, 5))  # diabetes is number 1
    low, high = np.quantile(values[indices].mean(axis=1), [0.025, 0.975])
    found = bootstrap(values, bootstrap_seed("diabetes"))
    assert (found.mean, found.low, found.high, found.n) == (pytest.approx(0.42), low, high, 5)
    assert bootstrap(values, bootstrap_seed("heloc")) != found


def test_bootstrap_without_spread_has_no_bounds() -> None:
    assert bootstrap([], 1) == Interval(None, None, None, 0)
    assert bootstrap([0.5, float("nan")], 1) == Interval(0.5, None, None, 1)
