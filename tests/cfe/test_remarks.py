"""Values that look like codes for "missing" are counted, and columns in which nothing stands apart have none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geco_ray.cfe.data.remarks import missing_codes, remarks_on

measured = st.integers(0, 10_000).map(lambda seed: np.random.default_rng(seed).uniform(40, 60, 200).round(1))


@given(
    measured, st.sampled_from([-1, -9, -99, -999, -9999, -999.25, 0, 999, 9999, 99999, 1e30, 3.4e38]), st.integers(1, 9)
)
def test_a_code_beside_measurements_is_found_and_counted(values: np.ndarray, code: float, times: int) -> None:
    values[:times] = code
    keep = np.arange(len(values)) > 0
    assert missing_codes(values) == [code]
    assert [(r.value, r.rows, r.used) for r in remarks_on(["debt"], values[:, None], keep)] == [
        (f"{code:g}", times, times - 1)
    ]


@given(measured, st.sampled_from([0, -5, -100]))
def test_measurements_alone_have_no_codes(values: np.ndarray, shift: float) -> None:
    assert missing_codes(values + shift) == []


@given(st.integers(2, 150), st.integers(-40, 60))
def test_counts_without_a_gap_have_no_codes(largest: int, first: int) -> None:
    assert missing_codes(np.arange(first, first + largest, dtype=float)) in ([], [-1.0][: first == -1])
    assert missing_codes(np.array([0.0, 1.0] * 30)) == []
    assert missing_codes(np.array([-1.0, 0.0, 1.0] * 30)) == []


def test_the_codes_of_one_survey_are_found_together() -> None:
    values = np.concatenate([np.arange(30), [-7, -8, -9, -9]]).astype(float)
    assert missing_codes(values) == [-9, -8, -7]
    assert missing_codes(np.concatenate([np.arange(30), [77, 99, 99]]).astype(float)) == [77, 99]


def test_a_single_outlier_of_two_digits_is_no_code() -> None:
    assert missing_codes(np.array([*range(30), 99.0])) == []
    assert missing_codes(np.array([*range(30), 99.0, 99.0])) == [99]


def test_a_column_that_numbers_the_rows_is_reported() -> None:
    x = np.column_stack([np.arange(1, 41), np.arange(40) % 7]).astype(float)
    (remark,) = remarks_on(["id", "debt"], x, np.ones(40, dtype=bool))
    assert (remark.column, remark.reading) == ("id", "the number of the row")


def test_an_index_that_pandas_has_named_is_reported_in_any_order() -> None:
    x = np.random.default_rng(1).permutation(40)[:, None].astype(float)
    (remark,) = remarks_on(["Unnamed: 0"], x, np.ones(40, dtype=bool))
    assert remark.reading == "the number of the row"
    assert remarks_on(["income"], x, np.ones(40, dtype=bool)) == []


@pytest.mark.parametrize("value", [0.0, -1.0, 1e300])
def test_a_column_of_one_value_has_no_codes_beside_others(value: float) -> None:
    assert missing_codes(np.full(20, value)) in ([], [1e300])
