"""Dropout whose masks come from a generator of its own, so that torch's global one is neither read nor moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode


class Dropout:
    """Sets each value to zero with probability ``rate`` and scales the others by 1 / (1 - rate).

    Args:
        rate: in [0, 1); at 0 nothing is drawn.
        seed: of the masks.
        device: where the masks are drawn.

    Attributes:
        generator: of the masks.
    """

    def __init__(self, rate: float, seed: int, device: str) -> None:
        self.rate = rate
        self.generator = torch.Generator(device=device).manual_seed(seed)

    def __call__(self, values: Tensor) -> Tensor:
        """``values`` of any shape with a fresh mask."""
        if self.rate == 0:
            return values
        kept = torch.rand(values.shape, generator=self.generator, device=self.generator.device) >= self.rate
        return values * kept.to(values) / (1 - self.rate)


@contextmanager
def replaced_dropout(modules: Sequence[nn.Module], drop: Callable[[Tensor], Tensor] | None) -> Iterator[None]:
    """While it is open, the dropout of ``modules`` is ``drop``, whatever their own rate; with None there is none.

    The library's own, in modules, in functions and in fused attention, would draw from the global generator.
    """
    if drop is None:
        yield
        return
    layers = [layer for module in modules for layer in module.modules() if isinstance(layer, nn.Dropout)]
    rates = [layer.p for layer in layers]
    for module in modules:
        module.train()
    for layer in layers:
        layer.p = 0.5  # any but 0, at which fused attention is not told to drop anything
    try:
        with _Replaced(drop):
            yield
    finally:
        for module in modules:
            module.eval()
        for layer, rate in zip(layers, rates, strict=True):
            layer.p = rate


class _Replaced(TorchFunctionMode):
    """Takes the place of dropout where it is called."""

    def __init__(self, drop: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.drop = drop

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is functional.dropout:
            values, training = args[0], args[2] if len(args) > 2 else kwargs.get("training", True)
            return self.drop(values) if training else values
        if func is functional.scaled_dot_product_attention and kwargs.get("dropout_p", 0.0) > 0:
            return self._attend(*args, **{name: value for name, value in kwargs.items() if name != "dropout_p"})
        return func(*args, **kwargs)

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
        scale: float | None = None,
    ) -> Tensor:
        """Attention in plain products, (n, heads, L, d), with dropout on the weights."""
        scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        if attn_mask is not None:
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        return self.drop(scores.softmax(-1)) @ value
