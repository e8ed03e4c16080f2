"""Architecture: other numbers and widths of hidden layers."""

from __future__ import annotations

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.changes.base import FAMILIES, VariantSpec
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool, TrainingJob, base_job
from geco_ray.registry import Profile

ONE = "8 16 32 64 128"
TWO = "8_8 8_16 8_32 16_8 16_16 16_32 32_8 32_16 32_64 64_16 64_32 64_64 128_32 128_64 128_128"
THREE = "8_8_8 16_16_8 16_16_16 32_16_8 32_32_16"
SHAPES = {name: tuple(map(int, name.split("_"))) for name in f"{ONE} {TWO} {THREE}".split()}


@FAMILIES.register("architecture", title="Architecture", profile=Profile(order=1, short="Arch."))
class Architecture:
    """5 shapes of one, 15 of two and 5 of three hidden layers; the base model's data and recipe."""

    def specs(self, base: BaseKey) -> list[VariantSpec]:
        """25 shapes."""
        specs = []
        for number, level in enumerate(SHAPES):
            seed = base.draw(base.seed, "architecture", level, 0)
            change_id = f"architecture:{level}:seed{seed}"
            specs.append(VariantSpec("architecture", number, level, 0, seed, change_id, level))
        return specs

    def change(self, spec: VariantSpec, base: BaseModel, pool: Pool) -> TrainingJob:
        """The base model's job for another shape."""
        return base_job(pool, spec.seed, SHAPES[spec.level])
