"""How far a changed model is from its base model: in decisions, probabilities, accuracy and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from geco_ray.cfe.decision import favourable as decide
from geco_ray.cfe.mlp import Mlp

if TYPE_CHECKING:
    import numpy.typing as npt

    from geco_ray.cfe.data.datasets import Part

ALLOWED_DROP = 0.03
Severity = Literal["low", "medium", "high"]


@dataclass(frozen=True)
class Descriptors:
    """Descriptors of a changed model on the test part ("Robust to Which Model Change?", Table 4); shares in 0..1.

    ``hard_disagreement``: share of rows decided otherwise than by the base model. ``probability_mae``: mean absolute
    difference of probability. ``balanced_accuracy_drop``: base minus variant; negative for a better variant.
    ``linf_distance`` and ``l2_distance``: largest and Euclidean parameter difference, null for another architecture.
    None of them ever excludes a variant.
    """

    hard_disagreement: float
    probability_mae: float
    base_balanced_accuracy: float
    balanced_accuracy: float
    balanced_accuracy_drop: float
    linf_distance: float | None
    l2_distance: float | None

    @property
    def quality_pass(self) -> bool:
        """Whether balanced accuracy drops by at most 0.03: the paper's flag, descriptive only."""
        return self.balanced_accuracy_drop <= ALLOWED_DROP


def describe(base: Mlp, variant: Mlp, test: Part) -> Descriptors:
    """Compare a variant with its base model on the test part."""
    p, q = base.probability(test.x), variant.probability(test.x)
    before, after = balanced_accuracy(test.y, decide(p)), balanced_accuracy(test.y, decide(q))
    linf, l2 = parameter_distances(base, variant)
    return Descriptors(
        hard_disagreement=float(np.mean(decide(p) != decide(q))),
        probability_mae=float(np.mean(np.abs(p.astype(np.float64) - q.astype(np.float64)))),
        base_balanced_accuracy=before,
        balanced_accuracy=after,
        balanced_accuracy_drop=before - after,
        linf_distance=linf,
        l2_distance=l2,
    )


def balanced_accuracy(y: npt.NDArray[np.int64], favourable: npt.NDArray[np.bool_]) -> float:
    """Mean of the two classes' recalls.

    Raises:
        ValueError: one class has no row.
    """
    recalls = []
    for label in (0, 1):
        of_class = y == label
        if not of_class.any():
            raise ValueError(f"balanced accuracy is undefined: no row of class {label}")
        recalls.append(float(np.mean(favourable[of_class] == bool(label))))
    return (recalls[0] + recalls[1]) / 2


def parameter_distances(base: Mlp, variant: Mlp) -> tuple[float | None, float | None]:
    """Largest absolute and Euclidean parameter difference; (None, None) if the shapes differ."""
    if base.inputs != variant.inputs or base.hidden != variant.hidden:
        return None, None
    pairs = zip((*base.weights, *base.biases), (*variant.weights, *variant.biases), strict=True)
    moves = np.concatenate([(a.astype(np.float64) - b.astype(np.float64)).ravel() for a, b in pairs])
    return float(np.abs(moves).max()), float(np.sqrt(np.sum(moves**2)))


def severity(described: Sequence[Descriptors]) -> list[tuple[float, Severity]]:
    """Percentile and stratum of each variant within one base model's bank.

    Variants are ranked by (probability_mae, hard_disagreement); percentile = (rank - 0.5) / count; low up to a third,
    medium up to two thirds, high above. The paper's claims do not use it.
    """
    order = sorted(
        range(len(described)), key=lambda i: (described[i].probability_mae, described[i].hard_disagreement, i)
    )
    result: list[tuple[float, Severity]] = [(0.0, "low")] * len(described)
    for rank, index in enumerate(order):
        share = (rank + 0.5) / len(described)
        result[index] = (share, "low" if share <= 1 / 3 else "medium" if share <= 2 / 3 else "high")
    return result
