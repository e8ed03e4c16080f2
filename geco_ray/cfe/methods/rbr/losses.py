"""RBR's two inner problems: the most and the least favourable Gaussian around a sample, within a Wasserstein ball.

Each depends on a sample only through its distance c to the point, and has two unknowns. All are solved together by
projected gradient steps; tensors are (requests, slots), ``used`` masks the slots that hold a sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

STEP = 1 / math.sqrt(1000)
"""Step size of the inner and of the outer problem."""


@dataclass(frozen=True)
class Setting:
    """Constants of both problems: ``features`` p, ``sigma``, ``radius`` epsilon, and the stopping rule.

    A descent ends after ``patience`` steps in a row whose loss did not fall by more than ``tolerance`` below the best.
    """

    features: int
    sigma: float
    radius: float
    max_steps: int = 1000
    patience: int = 10
    tolerance: float = 1e-10


class Optimistic:
    """log(v2 + s) + (c - v1)^2 / (2 (v2 + s)^2) + (p - 1) log s, minimised over v >= 0, |v| <= radius.

    Minus its minimum is the largest log-density that a sample of the other class can give to the point.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting, self.ball = setting, setting.radius

    def value(self, v1: torch.Tensor, v2: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        """The loss."""
        q, gap = v2 + self.setting.sigma, c - v1
        constant = (self.setting.features - 1) * math.log(self.setting.sigma)
        return torch.log(q) + gap * gap / (2 * q * q) + constant

    def gradient(self, v1: torch.Tensor, v2: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Derivatives by v1 and v2."""
        q, gap = v2 + self.setting.sigma, c - v1
        pull = gap / (q * q)
        return -pull, (1 - gap * pull) / q

    def slope(self, v1: torch.Tensor, v2: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        """Derivative by c, with v held."""
        q = v2 + self.setting.sigma
        return (c - v1) / (q * q)


class Pessimistic:
    """-log(u2 + s) - (c + sqrt(p) u1)^2 / (2 (u2 + s)^2) - (p - 1) log(g + s), over u >= 0, |u| <= radius /
    sqrt(p), with g = sqrt((1e-6 + radius^2 - p u1^2 - u2^2) / (p - 1)).

    Its minimum is the smallest log-density that a sample of the wanted class can give to the point.

    Args:
        setting: the constants.
        exact: take the derivative by u1 as it is; otherwise with the released code's sign of its last term.
    """

    def __init__(self, setting: Setting, exact: bool) -> None:
        self.setting, self.ball = setting, setting.radius / math.sqrt(setting.features)
        self._root, self._sign = math.sqrt(setting.features), 1.0 if exact else -1.0
        self._others = max(setting.features - 1, 1)  # a single feature has no g; its term is multiplied by 0

    def _spread(self, u1: torch.Tensor, u2: torch.Tensor) -> torch.Tensor:
        rest = 1e-6 + self.setting.radius**2 - self.setting.features * u1 * u1 - u2 * u2
        return torch.sqrt(rest / self._others)

    def value(self, u1: torch.Tensor, u2: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        """The loss."""
        q, reach = u2 + self.setting.sigma, c + self._root * u1
        last = (self.setting.features - 1) * torch.log(self._spread(u1, u2) + self.setting.sigma)
        return -torch.log(q) - reach * reach / (2 * q * q) - last

    def gradient(self, u1: torch.Tensor, u2: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Derivatives by u1 (exact or as coded) and u2."""
        q, reach, g = u2 + self.setting.sigma, c + self._root * u1, self._spread(u1, u2)
        pull = reach / (q * q)
        shrink = (self.setting.features - 1) / self._others / (g * (g + self.setting.sigma))
        first = self._sign * self.setting.features * u1 * shrink - self._root * pull
        return first, (reach * pull - 1) / q + u2 * shrink

    def slope(self, u1: torch.Tensor, u2: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        """Derivative by c, with u held."""
        q = u2 + self.setting.sigma
        return -(c + self._root * u1) / (q * q)


Loss = Optimistic | Pessimistic


def minimise(loss: Loss, c: torch.Tensor, used: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The last point of each projected descent from 0 at distances ``c`` (k, slots); a request's slots stop together.

    A row's numbers do not depend on the other rows.
    """
    setting = loss.setting
    first, second = torch.zeros_like(c), torch.zeros_like(c)
    best = torch.full((len(c), 1), torch.inf, dtype=torch.float64, device=c.device)
    stale = torch.zeros((len(c), 1), dtype=torch.int64, device=c.device)
    for _ in range(setting.max_steps):
        going = stale < setting.patience
        if not going.any():
            break
        total = (loss.value(first, second, c) * used).sum(dim=1, keepdim=True).double()
        slopes = loss.gradient(first, second, c)
        moved = [(w - STEP * g).clamp_(min=0) for w, g in zip((first, second), slopes, strict=True)]
        size = torch.sqrt(moved[0] * moved[0] + moved[1] * moved[1])
        scale = torch.where(size > loss.ball, loss.ball / size, 1.0)
        first = torch.where(going, moved[0] * scale, first)
        second = torch.where(going, moved[1] * scale, second)
        better = best - total > setting.tolerance
        stale = torch.where(going, torch.where(better, 0, stale + 1), stale)
        best = torch.where(better & going, total, best)
    return first, second
