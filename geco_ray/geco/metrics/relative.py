"""Mass accuracy relative to that of a reference, a model that was never trained on the task, as data.

:data:`RELATIVE_METRICS` holds every form with its formula, range and value where nothing has changed: the ratio and its
logarithm, and two forms that the authors' code computed. An undefined mass accuracy makes any of them NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from geco_ray.geco.scored import FloatArray

REFERENCE_ZERO = 1e6
"""What the authors' code takes for the ratio to a reference of 0."""

EPSILON = 1e-6


def ratio(mass: FloatArray, reference: FloatArray) -> FloatArray:
    """``mass / reference`` (GECOBench, relative mass accuracy); NaN where the reference is 0."""
    return mass / np.where(reference > 0, reference, np.nan)


def log_ratio(mass: FloatArray, reference: FloatArray) -> FloatArray:
    """``ln(mass / reference)``; NaN where either is 0."""
    return np.log(ratio(np.where(mass > 0, mass, np.nan), reference))


def log_ratio_minus_1(mass: FloatArray, reference: FloatArray) -> FloatArray:
    """The authors' code since March 2025: ``ln(mass / reference - 1)``, 0 where both are equal.

    So a doubling is 0 as equality is, a gain of nearly nothing is very negative, and any loss is NaN. A reference of 0
    counts as a ratio of a million.
    """
    taken = np.where(reference > 0, ratio(mass, reference), REFERENCE_ZERO)
    gained = np.log(np.where(taken > 1, taken - 1, np.nan))
    known = np.isfinite(mass) & np.isfinite(reference)
    return np.where(known, np.where(mass == reference, 0.0, gained), np.nan)


def log_ratio_eps(mass: FloatArray, reference: FloatArray) -> FloatArray:
    """The authors' code before March 2025: ``ln(mass / reference + 1e-6)``; NaN where the reference is 0."""
    return np.log(ratio(mass, reference) + EPSILON)


@dataclass(frozen=True, slots=True)
class RelativeMetric:
    """One form; its values lie between ``low`` and ``high``.

    Attributes:
        name: the column in tables. title: what people read. formula: with m and z for the two mass accuracies.
        compute: values of pairs (count,), NaN where undefined.
        unchanged: the value where both are equal.
        null_when: when a pair of defined mass accuracies has no value, in words.
        published: only the authors' code has this form; it belongs to ``paper``.
        better: the direction of better values.
    """

    name: str
    title: str
    formula: str
    compute: Callable[[FloatArray, FloatArray], FloatArray]
    unchanged: float
    null_when: str
    published: bool = False
    low: float = -math.inf
    high: float = math.inf
    better: Literal["higher", "lower"] = "higher"


RELATIVE_METRICS: Mapping[str, RelativeMetric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            RelativeMetric(
                name="relative_mass_accuracy",
                title="Relative mass accuracy",
                formula="m / z",
                compute=ratio,
                unchanged=1.0,
                null_when="the reference's is 0",
                low=0.0,
            ),
            RelativeMetric(
                name="log_relative_mass_accuracy",
                title="Logarithm of the relative mass accuracy",
                formula="ln(m / z)",
                compute=log_ratio,
                unchanged=0.0,
                null_when="either is 0",
            ),
            RelativeMetric(
                name="log_ratio_minus_1",
                title="ln(m / z - 1), as published since March 2025",
                formula="ln(m / z - 1), 0 if m = z, ln(1e6 - 1) if z = 0",
                compute=log_ratio_minus_1,
                unchanged=0.0,
                null_when="the reference's is larger",
                published=True,
            ),
            RelativeMetric(
                name="log_ratio_eps",
                title="ln(m / z + 1e-6), as published before March 2025",
                formula="ln(m / z + 1e-6)",
                compute=log_ratio_eps,
                unchanged=math.log1p(EPSILON),
                null_when="the reference's is 0",
                published=True,
                low=math.log(EPSILON),
            ),
        )
    }
)
"""All forms by name, in the order of the columns of a table."""
