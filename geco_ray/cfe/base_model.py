"""The base model: the network that counterfactuals are made for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool, base_job, train_stacked

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class BaseModel:
    """A trained base model with its name; ``epochs`` and ``best_epoch`` tell how its training ended."""

    key: BaseKey
    model: Mlp
    epochs: int = 0
    best_epoch: int = 0


def train_base(key: BaseKey, pool: Pool, device: torch.device | str = "cpu") -> BaseModel:
    """Train the base model of that name (two hidden layers of 32, Adam at 1e-3, patience 30)."""
    return train_bases([key], pool, device)[0]


def train_bases(keys: Sequence[BaseKey], pool: Pool, device: torch.device | str = "cpu") -> list[BaseModel]:
    """Train several base models of one data set as one stack."""
    trained = train_stacked([base_job(pool, key.initial_seed) for key in keys], pool, device)
    pairs = zip(keys, trained, strict=True)
    return [BaseModel(key, result.model, result.epochs, result.best_epoch) for key, result in pairs]
