"""Helper models of a method, made from the base model's data and never evaluated: BetaRCE's ensemble.

This module, like every method, imports nothing of the families of changed models or their bank; its seeds are kept
apart from theirs. (APΔS' replicas are in :mod:`geco_ray.cfe.methods.apas.calibration`, apart in the same way.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool, base_job, resampled, train_stacked

if TYPE_CHECKING:
    import torch

BETARCE_MODELS = 32


def ensemble_seeds(key: BaseKey, members: int = BETARCE_MODELS) -> list[int]:
    """Seeds of the first ``members`` resamples: b + 100000 + m, or hashes."""
    return [key.draw(key.seed + 100_000 + m, "betarce_ensemble", m) for m in range(members)]


def betarce_ensemble(
    key: BaseKey, model: Mlp, pool: Pool, device: torch.device | str = "cpu", members: int = BETARCE_MODELS
) -> tuple[Mlp, ...]:
    """Networks trained on bootstraps of the training part from the base model's initialisation, as one stack.

    A smaller ensemble is the beginning of a larger one. The construction is that of the evaluated ``bootstrap`` family,
    with other draws: on that family BetaRCE is tested in distribution ("Robust to Which Model Change?", BetaRCE).
    """
    job = base_job(pool, key.initial_seed, model.hidden)
    trained = train_stacked([resampled(job, seed) for seed in ensemble_seeds(key, members)], pool, device)
    return tuple(result.model for result in trained)
