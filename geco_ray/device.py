"""The one place that decides where tensors live and how many threads torch takes."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from geco_ray.errors import ResourceError, UserError

if TYPE_CHECKING:
    import torch


def resolve_device(name: str = "auto") -> torch.device:
    """Turn ``auto``, ``cpu``, ``cuda`` or ``cuda:N`` into a torch device.

    ``auto`` takes the GPU that Ray (or ``CUDA_VISIBLE_DEVICES``) made visible to this process, else the CPU.

    Raises:
        UserError: the name is none of these.
        ResourceError: a GPU is asked for by name and this process sees none.
    """
    import torch

    parse_device(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    number = int(name.partition(":")[2] or 0)  # torch itself wraps a large one round to a negative index
    if name.startswith("cuda") and number >= torch.cuda.device_count():
        raise ResourceError(
            f"device {name!r} was asked for, but this process sees {torch.cuda.device_count()} GPUs. Use --device cpu."
        )
    return torch.device(name)


def parse_device(name: str) -> str:
    """The name as given, if it is one of a device; whether this machine has it is :func:`resolve_device`'s affair.

    Raises:
        UserError: it is none.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", name):
        raise UserError(f"unknown device {name!r}", expected="auto, cpu, cuda or cuda:N")
    return name


def limit_threads(threads: int) -> None:
    """Give this process ``threads`` CPU threads for torch and for every BLAS, loaded already or yet to be.

    A slot of n CPUs must not start more than n, and a sum split over another number of threads ends in other bits.
    """
    count = max(1, threads)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(count)
    import threadpoolctl  # comes with scikit-learn
    import torch

    torch.set_num_threads(count)
    threadpoolctl.threadpool_limits(count, user_api="blas")  # NumPy's is loaded by now and read no variable
