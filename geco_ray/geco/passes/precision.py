"""Matrix products in reduced precision, for the time of one call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from geco_ray.errors import UserError
from geco_ray.geco.attribution.base import Precision


@contextmanager
def reduced_precision(precision: Precision | None, device: torch.device) -> Iterator[None]:
    """Compute within in ``precision``, see :class:`geco_ray.geco.attribution.base.ModelOptions`.

    Raises:
        UserError: ``tf32`` elsewhere than on a GPU of NVIDIA's that has it.
    """
    if precision is None:
        yield
    elif precision == "bfloat16":
        with torch.autocast(device.type, torch.bfloat16):
            yield
    else:
        if device.type != "cuda" or torch.cuda.get_device_capability(device) < (8, 0):
            raise UserError(
                "this device has no TF32",
                where="precision",
                found=str(device),
                expected="a GPU of NVIDIA's, Ampere or later",
                remedy="Leave precision out, or compute with --device cuda",
            )
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)
