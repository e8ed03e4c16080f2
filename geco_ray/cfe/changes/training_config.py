"""Training config: another optimizer, learning rate or weight decay."""

from __future__ import annotations

import dataclasses

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.changes.base import FAMILIES, VariantSpec
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool, TrainingJob, TrainingSettings, base_job
from geco_ray.registry import Profile

ADAM = [
    TrainingSettings(learning_rate=rate, weight_decay=decay)
    for rate in (2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3)
    for decay in (0.0, 1e-5, 1e-4, 1e-3)
    if (rate, decay) != (1e-3, 0.0)  # the base model itself
]
SGD = [
    TrainingSettings("sgd", learning_rate=rate, weight_decay=decay, momentum=0.9)
    for rate in (1e-2, 3e-2)
    for decay in (0.0, 1e-4, 1e-3)
]
SETTINGS = {f"{s.optimizer}_lr_{s.learning_rate:g}_wd_{s.weight_decay:g}": s for s in (*ADAM, *SGD)}


@FAMILIES.register("training_config", title="Training config", profile=Profile(order=4, short="Config"))
class TrainingConfig:
    """19 settings of Adam and 6 of SGD with momentum 0.9; the base model's data and initialisation."""

    def specs(self, base: BaseKey) -> list[VariantSpec]:
        """25 settings."""
        b = base.initial_seed
        return [
            VariantSpec("training_config", number, level, 0, b, f"training_config:{level}:seed{b}", level)
            for number, level in enumerate(SETTINGS)
        ]

    def change(self, spec: VariantSpec, base: BaseModel, pool: Pool) -> TrainingJob:
        """The base model's job with other settings."""
        job = base_job(pool, base.key.initial_seed, base.model.hidden)
        return dataclasses.replace(job, settings=SETTINGS[spec.level])
