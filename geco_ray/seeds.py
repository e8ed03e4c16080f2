"""Random streams that depend on what is computed and on nothing else.

A stream is named by the values that identify the work (dataset, seed, method, row, ...), never by the order,
the batch, the worker or a global state; so a result is the same alone, in a batch, resumed or on another node.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive_seed(*parts: str | int | float | None) -> int:
    """A 63-bit seed: the first eight bytes of the SHA-256 of the JSON list of ``parts``, sign bit cleared."""
    text = json.dumps(parts, separators=(",", ":"), allow_nan=False)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def numpy_stream(*parts: str | int | float | None) -> np.random.Generator:
    """A NumPy generator (PCG64) for the work named by ``parts``."""
    return np.random.default_rng(derive_seed(*parts))


def torch_stream(*parts: str | int | float | None) -> torch.Generator:
    """A CPU torch generator for the work named by ``parts``; move its draws to the device, not itself."""
    import torch

    return torch.Generator(device="cpu").manual_seed(derive_seed(*parts))
