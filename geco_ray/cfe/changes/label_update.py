"""Label update: a share of the training labels is turned over."""

from __future__ import annotations

import dataclasses

import numpy as np

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.changes.base import FAMILIES, VariantSpec, levelled_specs
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool, TrainingJob, base_job
from geco_ray.registry import Profile

SHARES = {"0.01": (0.01, 9), "0.05": (0.05, 8), "0.1": (0.1, 8)}


@FAMILIES.register("label_update", title="Label update", profile=Profile(order=5, short="Label"))
class LabelUpdate:
    """1, 5 or 10 per cent of the labels, drawn from ``default_rng(b + 40000 + 1000 f + r)``; features stay."""

    def specs(self, base: BaseKey) -> list[VariantSpec]:
        """9, 8 and 8 sets of labels."""
        draws = []
        for level, (share, replicates) in SHARES.items():
            for r in range(replicates):
                paper = base.seed + 40_000 + round(1000 * share) + r
                draws.append((level, r, base.draw(paper, "label_update", level, r)))
        return levelled_specs("label_update", draws)

    def change(self, spec: VariantSpec, base: BaseModel, pool: Pool) -> TrainingJob:
        """The base model's job with some labels y turned to 1 - y."""
        n = len(pool.train_y)
        size = max(1, round(SHARES[spec.level][0] * n))
        labels = pool.train_y.copy()
        turned = np.random.default_rng(spec.seed).choice(n, size=size, replace=False)
        labels[turned] = 1 - labels[turned]
        return dataclasses.replace(base_job(pool, base.key.initial_seed, base.model.hidden), labels=labels)
