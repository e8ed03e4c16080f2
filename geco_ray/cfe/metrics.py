"""The counterfactual benchmark's metrics, each as a ratio of two exact counts.

Q requests; G of them generated (status ``found`` or ``base_invalid``); V of those base-valid (``found``); M changed
models (of one family, or all). The V x M pairs of a base-valid counterfactual and a changed model are P; K of them stay
favourable.

======================  =============  ================================================
metric                  formula        null when
======================  =============  ================================================
coverage                G / Q          there are no requests
base validity           V / G          nothing was generated
valid share             V / Q          there are no requests
empirical robustness    K / P          nothing is base-valid, or M is 0
end-to-end robustness   K / (Q x M)    there are no requests, or M is 0
conditional survival    K' / P'        no pair is eligible (see below)
certified coverage      C / Q          there are no requests
distance                mean over V    nothing is base-valid
======================  =============  ================================================

P' and K' count only the pairs of P and K whose changed model still calls the factual adverse; C counts the answers that
carry their method's certificate. Conditional survival and the valid share are extras, not the paper's.

All ratios lie in [0, 1] and higher is better; a distance is at least 0 and lower is closer. End-to-end robustness is
coverage x base validity x empirical robustness. Ratios add: pooled values are sums of counts, seed-level means are
means of :attr:`Ratio.value`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GENERATED = frozenset({"found", "base_invalid"})


@dataclass(frozen=True, slots=True)
class Ratio:
    """A count over a count; ``value`` is ``None`` where the denominator is 0, never 0."""

    numerator: int
    denominator: int

    @property
    def value(self) -> float | None:
        """Numerator over denominator, or ``None`` if undefined."""
        return self.numerator / self.denominator if self.denominator else None

    def __add__(self, other: Ratio) -> Ratio:
        """The ratio over both populations together."""
        return Ratio(self.numerator + other.numerator, self.denominator + other.denominator)


@dataclass(frozen=True, slots=True)
class Mean:
    """A sum over a count; ``value`` is ``None`` for a count of 0."""

    total: float
    count: int

    @property
    def value(self) -> float | None:
        """Total over count, or ``None`` if undefined."""
        return self.total / self.count if self.count else None

    def __add__(self, other: Mean) -> Mean:
        """The mean over both populations together."""
        return Mean(self.total + other.total, self.count + other.count)


def coverage(status: Sequence[str]) -> Ratio:
    """G / Q: requests for which a point came back."""
    return Ratio(sum(s in GENERATED for s in status), len(status))


def base_validity(status: Sequence[str]) -> Ratio:
    """V / G: returned points that the base model calls favourable."""
    return Ratio(sum(s == "found" for s in status), sum(s in GENERATED for s in status))


def valid_share(status: Sequence[str]) -> Ratio:
    """V / Q: requests that end with a base-valid counterfactual."""
    return Ratio(sum(s == "found" for s in status), len(status))


def empirical_robustness(status: Sequence[str], variant_valid: NDArray[np.bool_]) -> Ratio:
    """K / P: pairs of a base-valid counterfactual and a changed model that also calls it favourable.

    Args:
        status: one per request.
        variant_valid: bool (requests, models); rows of requests without a base-valid point are ignored.
    """
    valid = _base_valid(status, variant_valid)
    return Ratio(int(variant_valid[valid].sum()), int(valid.sum()) * variant_valid.shape[1])


def end_to_end_robustness(status: Sequence[str], variant_valid: NDArray[np.bool_]) -> Ratio:
    """K / (Q x models): the same pairs over all requests, so that failures count; arguments as above."""
    valid = _base_valid(status, variant_valid)
    return Ratio(int(variant_valid[valid].sum()), len(valid) * variant_valid.shape[1])


def conditional_survival(
    status: Sequence[str], variant_valid: NDArray[np.bool_], factual_still_adverse: NDArray[np.bool_]
) -> Ratio:
    """Empirical robustness over the pairs whose changed model still calls the factual adverse.

    Args:
        status: one per request.
        variant_valid: bool (requests, models).
        factual_still_adverse: bool (requests, models).
    """
    pairs = _base_valid(status, variant_valid)[:, None] & factual_still_adverse
    return Ratio(int((variant_valid & pairs).sum()), int(pairs.sum()))


def certified_coverage(certified: Sequence[bool | None]) -> Ratio:
    """Requests whose answer carries its method's certificate, over all requests; ``None`` is no certificate."""
    return Ratio(sum(bool(c) for c in certified), len(certified))


def mean_distance(status: Sequence[str], distance: Sequence[float | None]) -> Mean:
    """Mean distance of the base-valid counterfactuals.

    Raises:
        ValueError: a base-valid counterfactual has no distance.
    """
    values = [x for s, x in zip(status, distance, strict=True) if s == "found"]
    if any(x is None for x in values):
        raise ValueError("a base-valid counterfactual has no distance")
    return Mean(float(np.sum(np.array(values, dtype=np.float64))), len(values))


def _base_valid(status: Sequence[str], variant_valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if variant_valid.ndim != 2 or len(variant_valid) != len(status):
        raise ValueError(f"expected ({len(status)}, models) validities, got shape {variant_valid.shape}")
    return np.array([s == "found" for s in status], dtype=bool)
