"""The metrics against counts made by hand, and null where a denominator is 0."""

from __future__ import annotations

import numpy as np
import pytest

from geco_ray.cfe import metrics
from geco_ray.cfe.distance import mean_scaled_l1, robust_scale
from geco_ray.cfe.metrics import Ratio

STATUS = ["found", "base_invalid", "not_found", "found", "budget", "error"]
# Three changed models. Rows of requests that are not base-valid hold True on purpose: they must not count.
VALID = np.array([[1, 0, 1], [1, 1, 1], [1, 1, 1], [0, 0, 1], [1, 1, 1], [1, 1, 1]], dtype=bool)
ADVERSE = np.array([[1, 1, 0], [1, 1, 1], [1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 1, 1]], dtype=bool)


def test_counts_by_hand() -> None:
    assert metrics.coverage(STATUS) == Ratio(3, 6)
    assert metrics.base_validity(STATUS) == Ratio(2, 3)
    assert metrics.valid_share(STATUS) == Ratio(2, 6)
    assert metrics.empirical_robustness(STATUS, VALID) == Ratio(3, 6)
    assert metrics.end_to_end_robustness(STATUS, VALID) == Ratio(3, 18)
    # Pairs with an adverse factual: request 0 models 0, 1 (survives 0); request 3 models 1, 2 (survives 2).
    assert metrics.conditional_survival(STATUS, VALID, ADVERSE) == Ratio(2, 4)
    assert metrics.certified_coverage([True, None, False, True, None, None]) == Ratio(2, 6)
    distance = metrics.mean_distance(STATUS, [1.0, None, None, 2.0, None, None])
    assert distance.value == 1.5


def test_end_to_end_is_the_product() -> None:
    parts = (metrics.coverage(STATUS), metrics.base_validity(STATUS), metrics.empirical_robustness(STATUS, VALID))
    product = np.prod([part.value for part in parts])
    assert metrics.end_to_end_robustness(STATUS, VALID).value == pytest.approx(product)


def test_undefined_is_null_not_zero() -> None:
    failed = ["not_found", "error"]
    none = np.zeros((2, 3), dtype=bool)
    assert metrics.coverage(failed).value == 0.0
    assert metrics.base_validity(failed).value is None
    assert metrics.empirical_robustness(failed, none).value is None
    assert metrics.end_to_end_robustness(failed, none).value == 0.0
    assert metrics.conditional_survival(failed, none, ~none).value is None
    assert metrics.mean_distance(failed, [None, None]).value is None
    assert metrics.coverage([]).value is None
    assert metrics.end_to_end_robustness([], np.zeros((0, 3), dtype=bool)).value is None
    assert metrics.empirical_robustness(["found"], np.zeros((1, 0), dtype=bool)).value is None


def test_pooling_adds_counts() -> None:
    assert Ratio(1, 2) + Ratio(3, 10) == Ratio(4, 12)
    assert (metrics.Mean(3.0, 2) + metrics.Mean(1.0, 2)).value == 1.0


def test_wrong_shapes_and_missing_distances_are_refused() -> None:
    with pytest.raises(ValueError, match="validities"):
        metrics.empirical_robustness(STATUS, VALID[:3])
    with pytest.raises(ValueError, match="no distance"):
        metrics.mean_distance(["found"], [None])


def test_robust_scale_falls_back_to_std_then_one() -> None:
    x = np.array([[1, 0, 5], [2, 0, 5], [3, 0, 5], [4, 0, 5], [10, 8, 5]], dtype=np.float32)
    # Feature 0: median 3, deviations 2 1 0 1 7, their median 1. Feature 1: deviation 0, std 3.2. Feature 2: constant.
    assert robust_scale(x) == pytest.approx([1.0, 3.2, 1.0])
    distance = mean_scaled_l1(np.array([[2.0, 3.2, 4.0]]), np.array([[1.0, 0.0, 6.0]]), robust_scale(x))
    assert distance == pytest.approx([(1.0 + 1.0 + 2.0) / 3])
