"""Dropout whose masks come from a generator of its own, so that torch's global one is neither read nor moved."""

from __future__ import annotations

import torch
from torch import Tensor


class Dropout:
    """Sets each value to zero with probability ``rate`` and scales the others by 1 / (1 - rate).

    Args:
        rate: in [0, 1); at 0 nothing is drawn.
        seed: of the masks.
        device: where the masks are drawn.
    """

    def __init__(self, rate: float, seed: int, device: str) -> None:
        self.rate = rate
        self._generator = torch.Generator(device=device).manual_seed(seed)

    def __call__(self, values: Tensor) -> Tensor:
        """``values`` of any shape with a fresh mask."""
        if self.rate == 0:
            return values
        kept = torch.rand(values.shape, generator=self._generator, device=self._generator.device) >= self.rate
        return values * kept.to(values) / (1 - self.rate)
