"""Bootstrap: the training rows redrawn with replacement."""

from __future__ import annotations

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.changes.base import FAMILIES, VARIANTS_PER_FAMILY, VariantSpec, levelled_specs
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool, TrainingJob, base_job, resampled
from geco_ray.registry import Profile

LEVEL = "100_percent"


@FAMILIES.register("bootstrap", title="Bootstrap", profile=Profile(order=2, short="Boot."))
class Bootstrap:
    """n rows of n, from ``default_rng(b + 10000 + r)``; the base model's initialisation."""

    def specs(self, base: BaseKey) -> list[VariantSpec]:
        """25 resamples."""
        draws = [
            (LEVEL, r, base.draw(base.seed + 10_000 + r, "bootstrap", LEVEL, r)) for r in range(VARIANTS_PER_FAMILY)
        ]
        return levelled_specs("bootstrap", draws)

    def change(self, spec: VariantSpec, base: BaseModel, pool: Pool) -> TrainingJob:
        """The base model's job on a resample."""
        return resampled(base_job(pool, base.key.initial_seed, base.model.hidden), spec.seed)
