"""The choice of OpenBLAS kernels: only where it is safe, and only before NumPy is there."""

from __future__ import annotations

import subprocess
import sys

from geco_ray.blas import NEEDED, choose_kernels, wide_kernels


def cpuinfo(vendor: str, flags: set[str]) -> str:
    one = f"processor\t: 0\nvendor_id\t: {vendor}\nflags\t\t: fpu sse2 avx2 {' '.join(sorted(flags))}\n\n"
    return one + one.replace("processor\t: 0", "processor\t: 1")


def test_amd_with_all_of_avx512_gets_wide_kernels() -> None:
    assert wide_kernels(cpuinfo("AuthenticAMD", NEEDED)) == "SKYLAKEX"


def test_all_others_keep_openblas_own_choice() -> None:
    assert wide_kernels(cpuinfo("AuthenticAMD", NEEDED - {"avx512vl"})) is None
    assert wide_kernels(cpuinfo("AuthenticAMD", set())) is None
    assert wide_kernels(cpuinfo("GenuineIntel", NEEDED)) is None
    assert wide_kernels("") is None
    assert wide_kernels("Processor : ARMv8\nFeatures : neon\n") is None


def test_nothing_is_set_once_numpy_is_loaded_or_the_user_chose() -> None:
    import numpy  # noqa: F401

    assert choose_kernels() is None
    code = (
        "import os; os.environ['OPENBLAS_CORETYPE'] = 'Haswell'\n"
        "from geco_ray.blas import choose_kernels\n"
        "assert choose_kernels() is None and os.environ['OPENBLAS_CORETYPE'] == 'Haswell'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_numpy_works_with_the_chosen_kernels() -> None:
    code = (
        "from geco_ray.blas import choose_kernels\n"
        "choose_kernels()\n"
        "import numpy as np\n"
        "a = np.arange(6, dtype=np.float32).reshape(2, 3)\n"
        "assert (a @ a.T == [[5, 14], [14, 50]]).all()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
