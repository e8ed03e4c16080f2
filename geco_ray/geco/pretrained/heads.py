"""Heads as the library's sequence classifiers have them, with every activation as a module that DeepLift can see."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from geco_ray.geco.backbones.base import Drop


class DenseHead(nn.Module):
    """A linear layer, an activation, a linear layer without or with bias.

    Args:
        width: of the input. labels: number of classes. activation: between the layers.
        drops: at which of the two layers dropout acts on the input.
    """

    def __init__(self, width: int, labels: int, activation: nn.Module, drops: tuple[bool, bool]) -> None:
        super().__init__()
        self.drops = drops
        with torch.random.fork_rng(devices=[]):
            self.dense = nn.Linear(width, width)
            self.out_proj = nn.Linear(width, labels)
        self.activation = activation

    def forward(self, features: Tensor, drop: Drop | None = None) -> Tensor:
        first, second = (drop if acts else None for acts in self.drops)
        hidden = self.activation(self.dense(features if first is None else first(features)))
        logits: Tensor = self.out_proj(hidden if second is None else second(hidden))
        return logits


class LinearHead(nn.Linear):
    """One linear layer with dropout before it."""

    def __init__(self, width: int, labels: int, *, bias: bool = True) -> None:
        with torch.random.fork_rng(devices=[]):
            super().__init__(width, labels, bias=bias)

    def forward(self, features: Tensor, drop: Drop | None = None) -> Tensor:
        return super().forward(features if drop is None else drop(features))
