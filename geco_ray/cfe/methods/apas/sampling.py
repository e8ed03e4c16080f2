"""Networks drawn from a box around the base model, all asked at once: the acceptance test of APΔS."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.search.products import product


def sample_size(confidence: float, robustness: float) -> int:
    """Networks that must all agree so that, with ``confidence``, a share of at least ``robustness`` of the box does.

    ``ceil(ln(1 - confidence) / ln(robustness))``, 1,379 for 0.999 and 0.995 (Marzari et al., APΔS).
    """
    return math.ceil(math.log(1 - confidence) / math.log(robustness))


class SampledNetworks:
    """``count`` networks whose parameters differ from the base model's by independent uniform draws.

    Drawn on the CPU, parameter by parameter in forward order (weight, bias, ...), then moved to ``device``; about
    2,100 floats a network for two hidden layers of 32 units.

    Args:
        model: the base model.
        radius: largest change of any parameter.
        count: number of networks.
        seed: seed of the torch generator.
        device: where the test runs.
    """

    def __init__(self, model: Mlp, radius: float, count: int, seed: int, device: str = "cpu") -> None:
        generator = torch.Generator(device="cpu").manual_seed(seed)
        self._layers: list[tuple[torch.Tensor, torch.Tensor]] = []
        for weight, bias in zip(model.weights, model.biases, strict=True):
            moved = []
            for parameter in (weight, bias):
                draw = torch.empty((count, *parameter.shape)).uniform_(-radius, radius, generator=generator)
                moved.append((draw + torch.tensor(parameter)).to(device))
            # The CPU sums products in float64: converted here once, and not for every point that is asked about.
            self._layers.append((moved[0].double() if moved[0].device.type == "cpu" else moved[0], moved[1]))
        self._device = device

    def favourable(self, point: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which networks call ``point`` (d,) favourable (a logit of at least 0, in float32); bool (count,).

        One point at a time: a product's rounding depends on the number of its columns, and an answer must not depend
        on what else is asked.
        """
        h = torch.tensor(point, dtype=torch.float32, device=self._device)[:, None]
        for number, (weight, bias) in enumerate(self._layers):
            h = torch.relu_(h) if number else h
            h = product(weight, h.to(weight.dtype)).float() + bias[..., None]
        return np.asarray((h[:, 0, 0] >= 0).cpu().numpy())

    def accept(self, point: NDArray[np.float64]) -> bool:
        """Whether every network calls ``point`` (d,) favourable."""
        return bool(self.favourable(point).all())
