"""Which matrix kernels NumPy's BLAS takes, and on how many threads.

OpenBLAS, which NumPy's wheels carry, does not know every AMD processor and falls back to AVX2 kernels where AVX-512
ones would be up to twice as fast on our small matrices. It reads ``OPENBLAS_CORETYPE`` once, when it is loaded. The
product leaves that choice to whoever runs it; ``benchmarks/bank.py`` asks for AVX-512 kernels by
:func:`choose_kernels`, unless the variable is set.
"""

from __future__ import annotations

import functools
import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

VARIABLE = "OPENBLAS_CORETYPE"
NEEDED = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}  # what the SKYLAKEX kernels use


def wide_kernels(cpuinfo: str) -> str | None:
    """The kernels to ask for, from Linux' ``/proc/cpuinfo``; none where OpenBLAS' own choice is right.

    Only AMD processors with all of AVX-512's parts get another choice; Intel's are recognised by OpenBLAS.
    """
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    amd = fields.get("vendor_id") == "AuthenticAMD"
    return "SKYLAKEX" if amd and set(fields.get("flags", "").split()) >= NEEDED else None


def choose_kernels() -> str | None:
    """Set the variable for this process and its children, and return what was set.

    Does nothing if the variable is set, or if NumPy is loaded already: then children must not differ from us.
    """
    if VARIABLE in os.environ or "numpy" in sys.modules:
        return None
    try:
        kernels = wide_kernels(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    if kernels:
        os.environ[VARIABLE] = kernels
    return kernels


def one_blas_thread() -> AbstractContextManager[object]:
    """Keep NumPy's BLAS to one thread: our matrices are small, and sums must not depend on a machine's cores."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited


@functools.cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController()
