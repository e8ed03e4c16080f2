"""Descriptors by hand."""

from __future__ import annotations

import numpy as np
import pytest

from geco_ray.cfe.data.datasets import Part
from geco_ray.cfe.descriptors import Descriptors, balanced_accuracy, describe, parameter_distances, severity
from geco_ray.cfe.mlp import Mlp


def line(slope: float, offset: float) -> Mlp:
    """Logit = slope * x + offset, with no hidden layer."""
    return Mlp((np.array([[slope]], dtype=np.float32),), (np.array([offset], dtype=np.float32),))


def test_descriptors_by_hand() -> None:
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    part = Part(x, np.array([0, 1, 1, 1]), np.arange(4))
    base, variant = line(1, 0), line(1, -1.5)  # the variant favours x >= 1.5 only
    found = describe(base, variant, part)

    def p(z: float) -> float:
        return float(1 / (1 + np.exp(-z)))

    assert found.hard_disagreement == 0.25
    assert found.probability_mae == pytest.approx(np.mean([p(v) - p(v - 1.5) for v in (-2, -1, 1, 2)]), abs=1e-6)
    assert found.base_balanced_accuracy == pytest.approx((1 + 2 / 3) / 2)
    assert found.balanced_accuracy == pytest.approx((1 + 1 / 3) / 2)
    assert found.balanced_accuracy_drop == pytest.approx(1 / 6)
    assert not found.quality_pass
    assert (found.linf_distance, found.l2_distance) == (1.5, 1.5)


def test_no_change_is_no_distance_and_better_is_a_negative_drop() -> None:
    part = Part(np.array([[-1.0], [1.0]]), np.array([0, 1]), np.arange(2))
    same = describe(line(1, 0), line(1, 0), part)
    assert (same.hard_disagreement, same.probability_mae, same.linf_distance, same.l2_distance) == (0, 0, 0, 0)
    better = describe(line(-1, 0), line(1, 0), part)
    assert (better.balanced_accuracy_drop, better.hard_disagreement, better.quality_pass) == (-1, 1, True)


def test_distance_is_null_for_another_architecture() -> None:
    assert parameter_distances(Mlp.initial(3, (4,), seed=0), Mlp.initial(3, (5,), seed=0)) == (None, None)
    one, other = Mlp.initial(3, (4,), seed=0), Mlp.initial(3, (4,), seed=1)
    linf, l2 = parameter_distances(one, other)
    assert linf is not None
    assert l2 is not None
    assert 0 < linf < l2


def test_balanced_accuracy_needs_both_classes() -> None:
    assert balanced_accuracy(np.array([0, 0, 0, 1]), np.array([False, False, True, True])) == pytest.approx(5 / 6)
    with pytest.raises(ValueError, match="class 0"):
        balanced_accuracy(np.array([1, 1]), np.array([True, True]))


def test_severity_ranks_by_probability_then_decision() -> None:
    def made(mae: float, hard: float) -> Descriptors:
        return Descriptors(hard, mae, 1, 1, 0, None, None)

    found = severity([made(0.3, 0), made(0.1, 0.2), made(0.1, 0.1)])
    assert [stratum for _, stratum in found] == ["high", "medium", "low"]
    assert [share for share, _ in found] == pytest.approx([5 / 6, 1 / 2, 1 / 6])
