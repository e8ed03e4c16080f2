"""Data addition: rows of the update pool join the training rows."""

from __future__ import annotations

import dataclasses

import numpy as np

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.changes.base import FAMILIES, VariantSpec, levelled_specs
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool, TrainingJob, base_job
from geco_ray.registry import Profile

SHARES = {
    "0.25_update_pool": (0.25, 8),
    "0.5_update_pool": (0.5, 8),
    "0.75_update_pool": (0.75, 8),
    "1_update_pool": (1.0, 1),
}


@FAMILIES.register("data_addition", title="Data addition", profile=Profile(order=7, short="Addit."))
class DataAddition:
    """25, 50, 75 or 100 per cent of the pool, drawn from ``default_rng(b + 30000 + 1000 f + r)``, with true labels."""

    def specs(self, base: BaseKey) -> list[VariantSpec]:
        """8, 8, 8 subsets of the pool, and the whole pool once."""
        draws = []
        for level, (share, replicates) in SHARES.items():
            for r in range(replicates):
                paper = base.seed + 30_000 + round(1000 * share) + r
                draws.append((level, r, base.draw(paper, "data_addition", level, r)))
        specs = levelled_specs("data_addition", draws)
        # The whole pool is the same set whatever the seed.
        whole = dataclasses.replace(specs[-1], draw=specs[-1].level)
        return [*specs[:-1], whole]

    def change(self, spec: VariantSpec, base: BaseModel, pool: Pool) -> TrainingJob:
        """The base model's job on its rows and, after them, the added ones."""
        n, u = len(pool.train_y), len(pool.update_y)
        if not u:
            raise ValueError("data addition needs an update pool")
        size = max(1, round(SHARES[spec.level][0] * u))
        added = np.sort(np.random.default_rng(spec.seed).choice(u, size=size, replace=False))
        job = base_job(pool, base.key.initial_seed, base.model.hidden)
        rows = np.concatenate([job.rows, n + added])
        return TrainingJob(job.initial, rows, np.concatenate([job.labels, pool.update_y[added]]))
