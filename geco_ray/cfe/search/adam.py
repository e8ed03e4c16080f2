"""Adam on independent rows of one tensor, without autograd: what the iterative methods share."""

from __future__ import annotations

import math

import torch

from geco_ray.cfe.rowwise import pad_rows


class RowAdam:
    """Adam (optionally AMSGrad) for rows that all started together; equal to ``torch.optim.Adam`` per row.

    Args:
        x: starting points (k, d); :attr:`x` is a copy padded to whole tiles, see :mod:`geco_ray.cfe.rowwise`.
        lr: learning rate.
        amsgrad: keep the largest second moment seen so far.
    """

    beta1, beta2, eps = 0.9, 0.999, 1e-8

    def __init__(self, x: torch.Tensor, lr: float, amsgrad: bool = False) -> None:
        self.x, self.lr, self.steps = pad_rows(x).clone(), lr, 0
        self._first, self._second = torch.zeros_like(self.x), torch.zeros_like(self.x)
        self._largest = torch.zeros_like(self.x) if amsgrad else None

    def step(self, gradient: torch.Tensor) -> None:
        """One update of all rows by ``gradient`` (padded k, d)."""
        self.steps += 1
        self._first.lerp_(gradient, 1 - self.beta1)
        self._second.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
        second = self._second
        if self._largest is not None:
            second = torch.maximum(self._largest, second, out=self._largest)
        scale = math.sqrt(1 - self.beta2**self.steps)
        self.x.addcdiv_(
            self._first,
            second.sqrt().div_(scale).add_(self.eps),
            value=-self.lr / (1 - self.beta1**self.steps),
        )

    def keep(self, rows: torch.Tensor) -> None:
        """Drop all rows but those with the indices ``rows``, padded again; the finished ones leave the batch."""
        self.x, self._first, self._second = (pad_rows(t[rows]) for t in (self.x, self._first, self._second))
        if self._largest is not None:
            self._largest = pad_rows(self._largest[rows])
