"""Deletion: a share of the training rows is taken out."""

from __future__ import annotations

import numpy as np

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.changes.base import FAMILIES, VariantSpec, levelled_specs
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool, TrainingJob, base_job
from geco_ray.registry import Profile

SHARES = {"0.01": (0.01, 9), "0.05": (0.05, 8), "0.1": (0.1, 8)}


@FAMILIES.register("deletion", title="Deletion", profile=Profile(order=6, short="Delet."))
class Deletion:
    """1, 5 or 10 per cent of the rows are left out, drawn from ``default_rng(b + 20000 + 1000 f + r)``."""

    def specs(self, base: BaseKey) -> list[VariantSpec]:
        """9, 8 and 8 subsets."""
        draws = []
        for level, (share, replicates) in SHARES.items():
            for r in range(replicates):
                paper = base.seed + 20_000 + round(1000 * share) + r
                draws.append((level, r, base.draw(paper, "deletion", level, r)))
        return levelled_specs("deletion", draws)

    def change(self, spec: VariantSpec, base: BaseModel, pool: Pool) -> TrainingJob:
        """The base model's job on the rows that stay, in their order."""
        share, n = SHARES[spec.level][0], len(pool.train_y)
        rows = np.random.default_rng(spec.seed).choice(n, size=round((1 - share) * n), replace=False)
        rows = np.sort(rows)
        return TrainingJob(base_job(pool, base.key.initial_seed, base.model.hidden).initial, rows, pool.train_y[rows])
