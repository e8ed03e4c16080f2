"""Matrix products of the searches' small networks: on the CPU NumPy's, summed in float64; on a GPU torch's.

torch's own products on the CPU are MKL's, which takes other kernels on another vendor's processor, and can be told not
to only for the whole process. NumPy's BLAS takes the kernels it is told (:mod:`geco_ray.arithmetic`). Its float32
kernels round a row by its place among the others; the float64 ones don't, which keeps a request's answer the same in
any batch. Sums are rounded to the type of ``a`` or ``x``. All functions take and give tensors on one device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a @ b``, with matmul's rules for vectors and batches. No gradient passes it."""
    if a.device.type != "cpu":
        return torch.matmul(a, b)
    exact = torch.as_tensor(np.matmul(a.double().numpy(), b.double().numpy()))
    return exact.to(a.dtype)


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """``x @ weight.T + bias`` for ``x`` (..., m, d), ``weight`` (u, d) and ``bias`` (u,). No gradient passes it."""
    if x.device.type != "cpu":
        return functional.linear(x, weight, bias)
    out = product(x, weight.T)
    return out if bias is None else out.add_(bias)


def solve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The solution x (n,) of ``a`` x = ``b``, ``a`` (n, n)."""
    if a.device.type != "cpu":
        solved: torch.Tensor = torch.linalg.solve(a, b)
        return solved
    return torch.as_tensor(np.linalg.solve(a.numpy(), b.numpy()))


class _Linear(torch.autograd.Function):
    """:func:`linear` with torch's gradients by all three, on 2-dimensional ``x``."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return linear(x.detach(), weight.detach(), bias.detach())

    @staticmethod
    def backward(ctx: Any, *above: Any) -> Any:
        (error,), (x, weight) = above, ctx.saved_tensors
        by_x = product(error, weight) if ctx.needs_input_grad[0] else None
        return by_x, product(error.T, x), error.sum(dim=0)


def trainable_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """:func:`linear` of rows ``x`` (m, d), differentiable by all three."""
    out: torch.Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return out
