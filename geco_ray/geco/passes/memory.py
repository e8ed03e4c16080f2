"""A smaller token budget where a device is out of memory, as often as it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SMALLEST_BUDGET = 64
"""Tokens: where this does not fit, no halving helps; a single long sentence may need more than a pass of many."""

_CPU_MESSAGE = "can't allocate memory"


def with_halved_budget(compute: Callable[[int], T], budget: int) -> tuple[T, int]:
    """``compute(budget)``, again with half of it after each out-of-memory; the result, and the budget that held.

    Raises:
        Exception: the device is out of memory at the smallest budget, or ``compute`` raised something else.
    """
    while True:
        try:
            return compute(budget), budget
        except Exception as error:
            if not is_out_of_memory(error) or budget <= SMALLEST_BUDGET:
                raise
        _free()  # outside of the except, whose traceback keeps the failed pass alive
        budget = max(SMALLEST_BUDGET, budget // 2)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device, or the machine, had no memory left for an array."""
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and _CPU_MESSAGE in str(error)


def _free() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
