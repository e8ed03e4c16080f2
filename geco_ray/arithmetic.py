"""Which kernels NumPy, its BLAS and torch compute with, and on how many threads.

The libraries choose their kernels by the processor, and kernels differ in how they round. In one product that is the
last bit; in a training of hundreds of epochs it is another best epoch, so another model. ``pinned`` arithmetic, the
default of a run, asks for the kernels that every x86-64 processor with AVX2 and FMA has; ``native`` asks for nothing.
The libraries read what is asked for once, when they are loaded. Records hold what was *used*, read back from the
libraries. Linux on x86-64 is covered; elsewhere nothing is asked for, and records say what was used.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Literal

Arithmetic = Literal["pinned", "native"]

PINNED = {
    "OPENBLAS_CORETYPE": "Haswell",  # the BLAS and LAPACK in NumPy's and SciPy's wheels
    "ATEN_CPU_CAPABILITY": "avx2",  # torch's own loops
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "AVX2",  # of Intel's processors; MKL knows no branch that is quick and the same on AMD's
}
# NumPy's dispatched loops above AVX2, under the names before and since 2.4.
_NUMPY_WIDE = {
    False: ("AVX512F", "AVX512CD", "AVX512_SKX", "AVX512_CLX", "AVX512_CNL", "AVX512_ICL", "AVX512_SPR"),
    True: ("X86_V4", "AVX512_ICL", "AVX512_SPR"),
}
_NEEDED = {"avx2", "fma"}
_MKL_BRANCHES = {1: "own choice", 2: "auto", 3: "compatible", 9: "AVX", 10: "AVX2", 12: "AVX512"}
UNRECORDED = "not recorded"


def pinned_variables(numpy_version: str | None = None) -> dict[str, str]:
    """The environment of pinned arithmetic, for a process that has not loaded NumPy or torch yet.

    ``numpy_version`` is the installed one where none is given. A wide feature that a processor lacks may be named:
    NumPy then notes it as an ImportWarning, which Python does not show.
    """
    version = numpy_version or importlib.metadata.version("numpy")
    major, minor = (int(part) for part in version.split(".")[:2])
    return PINNED | {"NPY_DISABLE_CPU_FEATURES": " ".join(_NUMPY_WIDE[(major, minor) >= (2, 4)])}


def covered(cpuinfo: str | None = None) -> bool:
    """Whether this machine has the pinned kernels, by Linux' ``/proc/cpuinfo``: OpenBLAS would not check it."""
    if cpuinfo is None:
        try:
            cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return set(value.split()) >= _NEEDED
    return False


def set_arithmetic(arithmetic: Arithmetic) -> None:
    """Ask for ``pinned`` kernels in this process and its children; for ``native`` leave the environment alone.

    What the environment asks for already is replaced. If NumPy or torch is loaded with other kernels, this process
    keeps them: a UserWarning says so, once.
    """
    if arithmetic == "pinned" and covered():
        os.environ.update(pinned_variables())
        if not is_pinned(used := kernels()):
            _warn(describe(used))


@functools.cache
def _warn(used: str) -> None:
    warnings.warn(
        f"NumPy or torch was imported before the kernels were pinned, and computes with {used}: results can differ "
        "from another machine's. Call geco_ray.arithmetic.set_arithmetic('pinned') before importing them.",
        stacklevel=3,
    )


def kernels() -> dict[str, str]:
    """The kernels of the libraries that this process has loaded, as they themselves say.

    Keys: ``blas`` (of NumPy and SciPy), ``numpy`` (its own loops), ``torch``, ``mkl`` (inside torch; MKL's name for the
    branch it was set to take). A library that is not loaded has no key.
    """
    loaded = [name for name in ("numpy", "torch", "scipy.linalg", "sklearn") if name in sys.modules]
    return dict(_read(tuple(loaded)))


@functools.cache
def _read(loaded: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    if "numpy" in loaded:
        found |= {"blas": _blas_kernels(), "numpy": _numpy_kernels()}
    if "torch" in loaded:
        import torch

        found["torch"] = torch.backends.cpu.get_cpu_capability()
        if (branch := _mkl_branch(Path(torch.__file__))) is not None:
            found["mkl"] = branch
    return found


def _blas_kernels() -> str:
    libraries = [library for library in _controller().info() if library["user_api"] == "blas"]
    return ", ".join(sorted({str(library.get("architecture", library["internal_api"])) for library in libraries}))


def _numpy_kernels() -> str:
    """The widest of the features that NumPy's dispatched loops use."""
    core: Any = sys.modules["numpy._core._multiarray_umath"]  # where numpy.show_runtime looks

    used = [name for name in core.__cpu_dispatch__ if core.__cpu_features__[name]]
    return str((used or core.__cpu_baseline__ or ["none"])[-1])


def _mkl_branch(torch_file: Path) -> str | None:
    """Which of its reproducible branches torch's MKL was set to; None for a torch without MKL."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(str(torch_file.parent / "lib" / "libtorch_cpu.so"))
        number = int(library.mkl_serv_cbwr_get(-1)) & 0xFFFF  # the rest are flags
        return _MKL_BRANCHES.get(number, f"branch {number}")
    return None


def is_pinned(used: Mapping[str, str]) -> bool:
    """Whether :func:`kernels` are the pinned ones, as far as libraries are loaded (MKL's branch aside)."""
    blas, numpy, torch = used.get("blas", "Haswell"), used.get("numpy", "AVX2"), used.get("torch", "AVX2")
    return blas == "Haswell" and numpy in ("AVX2", "X86_V3") and torch == "AVX2"


def arithmetic_facts() -> dict[str, Any]:
    """What a record says: the kernels used, and whether they are the pinned ones."""
    used = kernels()
    return {"kernels": used, "arithmetic": "pinned" if is_pinned(used) else "native"}


def describe(used: Mapping[str, str] | None) -> str:
    """Kernels in one phrase."""
    if used is None:
        return UNRECORDED
    return ", ".join(f"{name} {kernel}" for name, kernel in sorted(used.items())) or "none loaded"


def kernel_groups(infos: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Which kernels the records of ``infos`` name, and how many each; more than one group is a mixture.

    A record that names fewer libraries than another (it needed no torch, say) is counted with the larger group that
    agrees with it. MKL's branch is left out: no stage of the counterfactual benchmark asks MKL.
    """
    counts = Counter(json.dumps(_judged(info.get("kernels")), sort_keys=True) for info in infos)
    groups: list[tuple[dict[str, str] | None, int]] = []
    for text, count in sorted(counts.items(), key=lambda item: (-len(item[0]), item[0])):
        used = json.loads(text)
        for place, (kept, number) in enumerate(groups):
            if used is not None and kept is not None and used.items() <= kept.items():
                groups[place] = (kept, number + count)
                break
        else:
            groups.append((used, count))
    return {describe(used): count for used, count in groups}


def _judged(used: Mapping[str, str] | None) -> dict[str, str] | None:
    return None if used is None else {name: kernel for name, kernel in used.items() if name != "mkl"}


def kernel_warning(infos: Iterable[Mapping[str, Any]]) -> str | None:
    """One sentence where cells were not all computed with the pinned kernels; None where they were."""
    groups = kernel_groups(kept := list(infos))
    groups_shown = "; ".join(f"{count:,} with {kernel}" for kernel, count in groups.items())
    if len(groups) > 1:
        return f"Mixed kernels: {groups_shown}. Cells of different kernels can differ as those of two machines do."
    if kept and not all(info.get("arithmetic") == "pinned" for info in kept):
        return f"Not the pinned kernels: {groups_shown}. Another processor can give other results."
    return None


def one_blas_thread() -> AbstractContextManager[object]:
    """Keep NumPy's BLAS to one thread: our matrices are small, and sums must not depend on a machine's cores."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited


def _controller() -> Any:
    return _controller_of("scipy.linalg" in sys.modules)


@functools.cache
def _controller_of(scipy_loaded: bool) -> Any:
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController()
