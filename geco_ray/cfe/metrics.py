"""The counterfactual benchmark's metrics, as data: each is one count over another.

Tables and arrays are counted into the same columns. Of the requests: ``requests``; ``generated`` (status ``found`` or
``base_invalid``: a point came back); ``valid`` (``found``: the base model accepts it), with ``distance_sum`` over them;
``certified`` (the answer carries its method's certificate). Of the pairs of a request and a changed model: ``asked``
(all of them); ``pairs`` (those of a base-valid counterfactual), of which ``survived`` stay favourable; ``eligible`` and
``eligible_survived``, the same for changed models that still reject the factual; ``other_pairs`` and
``other_survived``, the same without the family ``bootstrap``.

Counts add: pooled values are made of sums of counts, seed-level means are means of :meth:`Metric.value`.
End-to-end robustness is coverage x base validity x empirical robustness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

GENERATED = frozenset({"found", "base_invalid"})


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: ``numerator`` / ``denominator``, two of the columns above; null where the denominator is 0, never 0.

    Attributes:
        name: what code calls it. title: what people read. null_when: in words, when there is no value.
        high: upper end of its range, ``None`` if it has none; the lower end is 0.
        better: the direction of better values.
    """

    name: str
    title: str
    numerator: str
    denominator: str
    null_when: str
    high: float | None = 1.0
    better: Literal["higher", "lower"] = "higher"

    def value(self, counts: Mapping[str, float]) -> float | None:
        """The metric of these counts, or ``None`` if it is undefined.

        Raises:
            KeyError: the counts lack one of the two columns.
        """
        numerator, denominator = counts[self.numerator], counts[self.denominator]
        return numerator / denominator if denominator else None


_NO_REQUEST, _NOTHING_VALID = "there are no requests", "nothing is base-valid"
_NO_PAIR = "nothing is base-valid, or there are no changed models"

METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("coverage", "Coverage", "generated", "requests", _NO_REQUEST),
            Metric("base_validity", "Base validity", "valid", "generated", "nothing was generated"),
            Metric("valid_share", "Valid share", "valid", "requests", _NO_REQUEST),
            Metric("empirical_robustness", "Empirical robustness", "survived", "pairs", _NO_PAIR),
            Metric(
                "end_to_end_robustness",
                "End-to-end robustness",
                "survived",
                "asked",
                "there are no requests or no changed models",
            ),
            Metric(
                "conditional_survival",
                "Conditional survival",
                "eligible_survived",
                "eligible",
                "no changed model still rejects the factual of a base-valid counterfactual",
            ),
            # On the recipe of that family BetaRCE's helper models are made.
            Metric(
                "robustness_no_bootstrap",
                "Empirical robustness without bootstrap",
                "other_survived",
                "other_pairs",
                _NO_PAIR,
            ),
            Metric("certified_coverage", "Certified coverage", "certified", "requests", _NO_REQUEST),
            Metric("distance", "Distance", "distance_sum", "valid", _NOTHING_VALID, high=None, better="lower"),
        )
    }
)
"""All metrics by name. ``distance`` is the paper's proximity: the mean of scaled l1 distances."""


def count_requests(
    status: Sequence[str],
    distance: Sequence[float | None] | None = None,
    certified: Sequence[bool | None] | None = None,
) -> dict[str, float]:
    """The columns that count requests, from the columns of a counterfactuals table.

    ``distance_sum`` and ``certified`` are there if their column is given; a null certificate is none.

    Raises:
        ValueError: a base-valid counterfactual has no distance.
    """
    valid = [state == "found" for state in status]
    counts: dict[str, float] = {
        "requests": len(status),
        "generated": sum(state in GENERATED for state in status),
        "valid": sum(valid),
    }
    if distance is not None:
        values = [x for ok, x in zip(valid, distance, strict=True) if ok]
        if any(x is None for x in values):
            raise ValueError("a base-valid counterfactual has no distance")
        counts["distance_sum"] = float(np.sum(np.array(values, dtype=np.float64)))
    if certified is not None:
        counts["certified"] = sum(bool(c) for c in certified)
    return counts


def count_pairs(
    variant_valid: Sequence[Sequence[bool] | None],
    factual_still_adverse: Sequence[Sequence[bool]],
    other: Sequence[bool] | None = None,
) -> dict[str, float]:
    """The columns that count pairs, from the columns of a validity table.

    Args:
        variant_valid: one entry per request, null where it has no base-valid counterfactual.
        factual_still_adverse: bool (requests, models).
        other: bool (models,), those that are not of the family ``bootstrap``; without it ``other_pairs`` and
            ``other_survived`` are left out.

    Raises:
        ValueError: the arguments have different lengths.
    """
    models = len(factual_still_adverse[0]) if len(factual_still_adverse) else len(other or ())
    adverse = np.array(factual_still_adverse, dtype=np.bool_).reshape(len(factual_still_adverse), models)
    survived, valid = np.zeros_like(adverse), np.zeros_like(adverse)
    for row, answer in enumerate(_of_equal_length(variant_valid, adverse)):
        if answer is not None:
            survived[row], valid[row] = answer, True
    counts: dict[str, float] = {
        "asked": adverse.size,
        "pairs": int(valid.sum()),
        "survived": int(survived.sum()),
        "eligible": int((valid & adverse).sum()),
        "eligible_survived": int((survived & adverse).sum()),
    }
    if other is not None:
        counts["other_pairs"] = int(valid[:, np.array(other, dtype=np.bool_)].sum())
        counts["other_survived"] = int(survived[:, np.array(other, dtype=np.bool_)].sum())
    return counts


def _of_equal_length(
    variant_valid: Sequence[Sequence[bool] | None], adverse: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
) -> Sequence[Sequence[bool] | None]:
    lengths = {len(answer) for answer in variant_valid if answer is not None}
    if len(variant_valid) != len(adverse) or not lengths <= {adverse.shape[1]}:
        raise ValueError(f"expected {adverse.shape} validities, got {len(variant_valid)} rows of {sorted(lengths)}")
    return variant_valid
