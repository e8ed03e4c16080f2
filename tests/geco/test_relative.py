"""Relative mass accuracy, each form by hand."""

from __future__ import annotations

import numpy as np
import pytest

from geco_ray.geco.metrics import RELATIVE_METRICS

# Mass accuracy of a model and of the reference, and what each form makes of them; NaN where it is not defined.
NAN = float("nan")
CASES = {
    "relative_mass_accuracy": {(0.4, 0.2): 2.0, (0.3, 0.3): 1.0, (0.2, 0.4): 0.5, (0.0, 0.2): 0.0, (0.3, 0.0): NAN},
    "log_relative_mass_accuracy": {(0.4, 0.2): 0.6931, (0.3, 0.3): 0.0, (0.2, 0.4): -0.6931, (0.0, 0.2): NAN},
    "log_ratio_minus_1": {
        (0.4, 0.2): 0.0,
        (0.3, 0.3): 0.0,
        (0.2, 0.4): NAN,
        (0.3, 0.2): -0.6931,
        (0.30, 0.29): -3.3673,
        (0.3, 0.0): 13.8155,
        (0.0, 0.0): 0.0,
    },
    "log_ratio_eps": {(0.4, 0.2): 0.6931, (0.3, 0.3): 1e-6, (0.0, 0.2): -13.8155, (0.3, 0.0): NAN},
}


def test_every_form_has_a_case() -> None:
    assert list(RELATIVE_METRICS) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_form_is_what_its_formula_says(name: str) -> None:
    pairs = np.array(list(CASES[name])).T
    assert RELATIVE_METRICS[name].compute(*pairs) == pytest.approx(list(CASES[name].values()), abs=1e-4, nan_ok=True)


@pytest.mark.parametrize("metric", RELATIVE_METRICS.values(), ids=RELATIVE_METRICS)
def test_a_form_keeps_its_range_and_what_it_says_of_equality_and_nothing_undefined(metric: object) -> None:
    metric = RELATIVE_METRICS[metric.name]  # type: ignore[attr-defined]
    mass, reference = np.random.default_rng(0).random((2, 200))
    values = metric.compute(mass, reference)
    values = values[np.isfinite(values)]
    assert metric.low <= values.min() <= values.max() <= metric.high
    assert metric.compute(mass, mass) == pytest.approx(np.full(200, metric.unchanged))
    assert np.isnan(metric.compute(np.array([NAN, 0.5]), np.array([0.5, NAN]))).all()
    order = np.argsort(mass)
    risen = metric.compute(mass[order], np.full(200, 0.2))
    assert (np.diff(risen[np.isfinite(risen)]) >= 0).all()
