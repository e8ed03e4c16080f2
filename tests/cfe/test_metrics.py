"""The metrics: one generic case for all, counts by hand, and the same counts from a ledger's tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from analysis.load import _count_survivors
from geco_ray.cfe.distance import mean_scaled_l1, robust_scale
from geco_ray.cfe.metrics import METRICS, Metric, count_pairs, count_requests

STATUS = ["found", "base_invalid", "not_found", "found", "budget", "error"]
# Three changed models, the last of them of the family bootstrap.
VALID = [[True, False, True], None, None, [False, False, True], None, None]
ADVERSE = [[True, True, False], [True] * 3, [True] * 3, [False, True, True], [True] * 3, [True] * 3]
OTHER = [True, True, False]
CERTIFIED = [True, None, False, True, None, None]


def counts() -> dict[str, float]:
    """All columns of the example above."""
    distance = [1.0, None, None, 2.0, None, None]
    return count_requests(STATUS, distance, CERTIFIED) | count_pairs(VALID, ADVERSE, OTHER)


BY_HAND = {
    "coverage": 3 / 6,
    "base_validity": 2 / 3,
    "valid_share": 2 / 6,
    "empirical_robustness": 3 / 6,
    "end_to_end_robustness": 3 / 18,
    # Pairs with an adverse factual: request 0 models 0, 1 (survives 0); request 3 models 1, 2 (survives 2).
    "conditional_survival": 2 / 4,
    "robustness_no_bootstrap": 1 / 4,
    "certified_coverage": 2 / 6,
    "distance": 1.5,
}


def test_every_metric_has_a_case() -> None:
    assert set(METRICS) == set(BY_HAND), "add the new metric's value to BY_HAND"


@pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
class TestMetric:
    def test_value_by_hand(self, metric: Metric) -> None:
        assert metric.value(counts()) == BY_HAND[metric.name]

    def test_undefined_is_null_and_not_zero(self, metric: Metric) -> None:
        empty = count_requests([], [], []) | count_pairs([], [], [])
        assert metric.value(empty) is None
        assert metric.null_when

    def test_its_range_and_direction(self, metric: Metric) -> None:
        """The best that can be is at one end of the range, the worst at the other."""
        well = count_requests(["found"] * 2, [0.0, 0.0], [True] * 2) | count_pairs([[True]] * 2, [[True]] * 2, [True])
        badly = {
            "coverage": count_requests(["not_found"]),
            "base_validity": count_requests(["base_invalid"]),
            "valid_share": count_requests(["base_invalid"]),
            "certified_coverage": count_requests(["found"], certified=[None]),
            "distance": count_requests(["found"], [1e6]),
        }.get(metric.name, count_pairs([[False]], [[True]], [True]))
        best, worst = metric.value(well), metric.value(badly)
        ends = (metric.high, 0.0) if metric.better == "higher" else (0.0, 1e6)
        assert (best, worst) == ends

    def test_counts_of_two_populations_add(self, metric: Metric) -> None:
        twice = {name: 2 * value for name, value in counts().items()}
        assert metric.value(twice) == metric.value(counts())
        with pytest.raises(KeyError):
            metric.value({})


def test_end_to_end_is_the_product() -> None:
    parts = [METRICS[name].value(counts()) for name in ("coverage", "base_validity", "empirical_robustness")]
    assert METRICS["end_to_end_robustness"].value(counts()) == pytest.approx(np.prod(np.array(parts, dtype=float)))


def test_failures_count_end_to_end() -> None:
    failed = count_requests(["not_found", "error"]) | count_pairs([None, None], [[True], [False]])
    assert METRICS["coverage"].value(failed) == 0.0
    assert METRICS["empirical_robustness"].value(failed) is None
    assert METRICS["end_to_end_robustness"].value(failed) == 0.0


def test_the_ledgers_tables_are_counted_alike() -> None:
    kinds = {"variant_valid": pa.list_(pa.bool_()), "factual_still_adverse": pa.list_(pa.bool_())}
    columns = {"variant_valid": VALID, "factual_still_adverse": ADVERSE}
    frame = _count_survivors(
        pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()})
    ).to_pandas()
    mine = count_pairs(VALID, ADVERSE)
    for name in ("pairs", "survived", "eligible", "eligible_survived"):
        assert frame[name].sum() == mine[name]
    assert frame["variants"].sum() == mine["asked"]


def test_wrong_shapes_and_missing_distances_are_refused() -> None:
    with pytest.raises(ValueError, match="validities"):
        count_pairs(VALID[:3], ADVERSE)
    with pytest.raises(ValueError, match="validities"):
        count_pairs([[True]], ADVERSE[:1])
    with pytest.raises(ValueError, match="no distance"):
        count_requests(["found"], [None])


def test_robust_scale_falls_back_to_std_then_one() -> None:
    x = np.array([[1, 0, 5], [2, 0, 5], [3, 0, 5], [4, 0, 5], [10, 8, 5]], dtype=np.float32)
    # Feature 0: median 3, deviations 2 1 0 1 7, their median 1. Feature 1: deviation 0, std 3.2. Feature 2: constant.
    assert robust_scale(x) == pytest.approx([1.0, 3.2, 1.0])
    distance = mean_scaled_l1(np.array([[2.0, 3.2, 4.0]]), np.array([[1.0, 0.0, 6.0]]), robust_scale(x))
    assert distance == pytest.approx([(1.0 + 1.0 + 2.0) / 3])
