"""Adam and SGD on the flat parameters of many networks, each with its own learning rate and weight decay."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from geco_ray.cfe.training.job import BETAS, EPSILON, TrainingSettings


class StackedOptimizer:
    """State and in-place update; ``state`` lists what moves with a model when another one leaves the stack."""

    def __init__(self, settings: Sequence[TrainingSettings], parameters: torch.Tensor) -> None:
        device = parameters.device
        self.adam, self.momentum = settings[0].optimizer == "adam", settings[0].momentum
        self.decayed = any(s.weight_decay for s in settings)
        self.rate = torch.tensor([[s.learning_rate] for s in settings], device=device)
        self.decay = torch.tensor([[s.weight_decay] for s in settings], device=device)
        self.first, self.second = torch.zeros_like(parameters), torch.zeros_like(parameters)
        self.scratch = torch.zeros_like(parameters)

    @property
    def state(self) -> tuple[torch.Tensor, ...]:
        """Tensors with one row per model."""
        return self.first, self.second, self.rate, self.decay

    def step(self, parameters: torch.Tensor, gradients: torch.Tensor, steps: int) -> None:
        """Update the first rows of the stack in place, as torch's Adam or SGD would at its ``steps``-th step."""
        k = len(parameters)
        first = self.first[:k]
        if self.decayed:
            gradients.addcmul_(parameters, self.decay[:k])
        if not self.adam:
            first.mul_(self.momentum).add_(gradients)
            parameters.addcmul_(first, self.rate[:k], value=-1)
            return
        second, root = self.second[:k], self.scratch[:k]
        first.lerp_(gradients, 1 - BETAS[0])
        second.mul_(BETAS[1]).addcmul_(gradients, gradients, value=1 - BETAS[1])
        # m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps), with the square root of (1 - b2^t) taken out of the fraction
        correction = (1 - BETAS[1] ** steps) ** 0.5
        size = -correction / (1 - BETAS[0] ** steps)
        torch.sqrt(second, out=root)
        root.add_(EPSILON * correction)
        torch.div(first, root, out=root)
        parameters.addcmul_(root, self.rate[:k], value=size)
