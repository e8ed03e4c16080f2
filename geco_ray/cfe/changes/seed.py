"""New seed: the same data and recipe, another initialisation."""

from __future__ import annotations

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.changes.base import FAMILIES, VARIANTS_PER_FAMILY, VariantSpec, levelled_specs
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool, TrainingJob, base_job
from geco_ray.registry import Profile

LEVEL = "new_initialization"


@FAMILIES.register("seed", title="New seed", profile=Profile(order=3, short="Seed"))
class NewSeed:
    """Replicate r starts from seed b + 1 + r ("Robust to Which Model Change?", Table 2)."""

    def specs(self, base: BaseKey) -> list[VariantSpec]:
        """25 initialisations."""
        draws = [(LEVEL, r, base.draw(base.seed + 1 + r, "seed", LEVEL, r)) for r in range(VARIANTS_PER_FAMILY)]
        return levelled_specs("seed", draws)

    def change(self, spec: VariantSpec, base: BaseModel, pool: Pool) -> TrainingJob:
        """The base model's job from another start."""
        return base_job(pool, spec.seed, base.model.hidden)
