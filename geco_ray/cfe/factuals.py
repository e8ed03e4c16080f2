"""Which test rows ask for a counterfactual, and which validation rows a method may be tuned on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.decision import favourable
from geco_ray.cfe.seeding import BASE_SEEDS

if TYPE_CHECKING:
    import numpy.typing as npt

    from geco_ray.cfe.data.datasets import Part

MAX_FACTUALS = 250


@dataclass(frozen=True, eq=False)
class Factuals:
    """Adverse rows in request order: ids 0..k-1, row numbers in the raw table (k,), ``x`` float64 (k, d),
    the base model's probability float32 (k,), and how many rows were eligible.
    """

    ids: npt.NDArray[np.int64]
    row_ids: npt.NDArray[np.int64]
    x: npt.NDArray[np.float64]
    base_probability: npt.NDArray[np.float32]
    eligible: int

    def __len__(self) -> int:
        return len(self.ids)


def select_factuals(base: BaseModel, test: Part, limit: int = MAX_FACTUALS) -> Factuals:
    """Sample up to 250 test rows that the base model decides adversely, whatever their label.

    The paper samples with pandas and ``random_state`` b + 30000, even when all eligible rows are taken; so the request
    order is a permutation of the test order. No eligible row gives an empty selection.
    """
    return _sample(base, test, limit, base.key.draw32(base.key.seed + 30_000, "factuals"))


def tuning_factuals(base: BaseModel, val: Part, limit: int = 25) -> Factuals:
    """Sample up to ``limit`` adverse validation rows for tuning; the paper takes 25, of the first base model (2026).

    Raises:
        ValueError: the base model is another one.
    """
    if base.key.seed != BASE_SEEDS[0]:
        raise ValueError(f"methods are tuned on base seed {BASE_SEEDS[0]}, not {base.key.seed}")
    return _sample(base, val, limit, base.key.draw32(base.key.seed + 70_000, "tuning"))


def _sample(base: BaseModel, part: Part, limit: int, seed: int) -> Factuals:
    probability = base.model.probability(part.x)
    eligible = np.flatnonzero(~favourable(probability))
    size = min(limit, len(eligible))
    # What pandas' Series.sample(n, random_state=seed) does: NumPy's legacy generator, so the rows are the paper's.
    taken = eligible[np.random.RandomState(seed).choice(len(eligible), size=size, replace=False)] if size else eligible
    return Factuals(
        np.arange(size, dtype=np.int64), part.row_ids[taken], part.x[taken], probability[taken], len(eligible)
    )
