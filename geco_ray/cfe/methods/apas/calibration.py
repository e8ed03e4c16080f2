"""How far the parameters of a retrained network move: the radius that APΔS samples its networks from.

The base network is fine-tuned ten times on a resample of the update pool; the radius is the largest absolute change
of any parameter over the ten ("Robust to Which Model Change?", calibration of APΔS). No changed model of the
evaluation is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.search.products import trainable_linear
from geco_ray.cfe.seeding import BaseKey

REPLICAS = 10
BATCH = 8
LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class Radius:
    """The calibrated radius and the largest change in each replica."""

    value: float
    replicas: tuple[float, ...]


def replica_seeds(key: BaseKey) -> list[int]:
    """Seeds of the resamples: b + 200000 + r, or hashes."""
    return [key.draw(key.seed + 200_000 + r, "apas_calibration", r) for r in range(REPLICAS)]


def calibrate_radius(
    model: Mlp, update_x: NDArray[np.float32], update_y: NDArray[np.int64], seeds: Sequence[int]
) -> Radius:
    """Fine-tune ``model`` once per seed on the update pool (u, d) and measure the largest parameter change.

    Runs on the CPU: the networks are too small for anything else, and the paper's digits were made there.

    Raises:
        ValueError: no seeds, or an empty pool.
    """
    if not len(seeds) or not len(update_x):
        raise ValueError("the radius needs at least one replica and one row of the update pool")
    changes = []
    for seed in seeds:
        rows = np.random.default_rng(seed).integers(0, len(update_x), size=len(update_x))
        changes.append(largest_change(model, fine_tune(model, update_x[rows], update_y[rows])))
    return Radius(max(changes), tuple(changes))


def fine_tune(model: Mlp, x: NDArray[np.float32], y: NDArray[np.int64]) -> Mlp:
    """One pass over the rows in their order, batches of 8 (the last one may be smaller), a fresh Adam at 1e-3."""
    parameters = [torch.tensor(a) for pair in zip(model.weights, model.biases, strict=True) for a in pair]
    for parameter in parameters:
        parameter.requires_grad_()
    optimizer = torch.optim.Adam(parameters, lr=LEARNING_RATE)
    rows, labels = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    for batch, target in zip(torch.split(rows, BATCH), torch.split(labels, BATCH), strict=True):
        optimizer.zero_grad()
        probability = torch.sigmoid(_logit(parameters, batch))
        torch.nn.functional.binary_cross_entropy(probability, target).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    arrays = [parameter.detach().numpy().copy() for parameter in parameters]
    return Mlp(tuple(arrays[0::2]), tuple(arrays[1::2]))


def largest_change(one: Mlp, other: Mlp) -> float:
    """Largest absolute difference of any weight or bias of two networks of one shape, taken in float32."""
    pairs = zip((*one.weights, *one.biases), (*other.weights, *other.biases), strict=True)
    return max(float(np.abs(a - b).max()) for a, b in pairs)


def _logit(parameters: Sequence[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    layers = list(zip(parameters[0::2], parameters[1::2], strict=True))
    for weight, bias in layers[:-1]:
        x = torch.relu(trainable_linear(x, weight, bias))
    return trainable_linear(x, *layers[-1]).squeeze(1)
