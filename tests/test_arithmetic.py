"""Pinned kernels: the same bytes whatever the environment asks for, and records that say what was used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from geco_ray.arithmetic import covered, is_pinned, kernel_groups, kernel_warning, pinned_variables

PINNED = {"blas": "Haswell", "numpy": "X86_V3", "torch": "AVX2"}
WIDE = {"blas": "SkylakeX", "numpy": "AVX512_SPR", "torch": "AVX512"}
AVX512 = Path("/proc/cpuinfo").exists() and "avx512vl" in Path("/proc/cpuinfo").read_text()
OUTER: list[dict[str, str]] = [
    {},
    {"OPENBLAS_CORETYPE": "SkylakeX", "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
    {"ATEN_CPU_CAPABILITY": "default", "NPY_DISABLE_CPU_FEATURES": "X86_V3", "MKL_CBWR": "COMPATIBLE"},
    {"OPENBLAS_CORETYPE": "Sandybridge", "OPENBLAS_L2_SIZE": "2048", "OMP_NUM_THREADS": "1"},
]
RESULTS = """
import hashlib, sys
from geco_ray.arithmetic import kernels, set_arithmetic
set_arithmetic(sys.argv[1])
import numpy as np
from geco_ray.cfe.base_model import train_bases
from geco_ray.cfe.data.datasets import load_dataset
from geco_ray.cfe.factuals import select_factuals
from geco_ray.cfe.generation import generate
from geco_ray.cfe.methods.base import METHODS, GenerationTask
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool
data = load_dataset("breast_cancer")
bases = train_bases([BaseKey(data.name, seed) for seed in (2026, 2027)], Pool.of(data))
told = [hashlib.sha256(base.model.to_bytes()).hexdigest() for base in bases]
task, rows = GenerationTask.of(data, bases[0], "paper"), select_factuals(bases[0], data.test)
for name in ("wachter", "rbr"):
    method = METHODS.get(name)
    table = generate(method.target(task, method.options()), task, rows.x[:8], rows.ids[:8].tolist(), [0] * 8)
    told.append(hashlib.sha256(repr(table.drop_columns(["seconds"]).to_pylist()).encode()).hexdigest())
print(told, {name: kernels()[name] for name in ("blas", "numpy", "torch")})
"""


def child(code: str, *words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Python without this process's kernel settings, with those of ``env``."""
    kept = {key: value for key, value in os.environ.items() if key not in pinned_variables()}
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=kept | (env or {}), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def test_pinned_results_are_the_same_bytes_whatever_the_environment_asks_for() -> None:
    if not covered():
        pytest.skip("this processor has no AVX2 with FMA, or is not under Linux")
    assert len({child(RESULTS, "pinned", env=env).stdout for env in OUTER}) == 1


def test_native_results_hang_on_the_environment() -> None:
    """What pinning is for: the test above fails without it."""
    if not AVX512:
        pytest.skip("this processor has no AVX-512: OpenBLAS has no other kernels to take here")
    asked = [{"OPENBLAS_CORETYPE": name} for name in ("SkylakeX", "Haswell")]
    assert len({child(RESULTS, "native", env=env).stdout for env in asked}) == 2


def test_the_searches_ask_mkl_for_nothing() -> None:
    told = child(RESULTS, "pinned", env={"MKL_VERBOSE": "1"}).stdout
    assert "MKL_VERBOSE" not in told
    control = child("import torch\ntorch.ones(64, 64) @ torch.ones(64, 64)", env={"MKL_VERBOSE": "1"}).stdout
    assert "MKL_VERBOSE" in control or not torch_has_mkl()


def torch_has_mkl() -> bool:
    import torch

    return bool(torch.backends.mkl.is_available())


def test_native_leaves_the_environment_alone() -> None:
    code = "import os\nbefore = dict(os.environ)\nfrom geco_ray.arithmetic import set_arithmetic\n"
    child(code + "set_arithmetic('native')\nassert dict(os.environ) == before")


def test_who_imported_numpy_first_is_warned_once_and_the_facts_say_so() -> None:
    if not AVX512:
        pytest.skip("this processor has no AVX-512, so NumPy's own choice is the pinned one")
    code = (
        "import numpy, warnings\nfrom geco_ray.arithmetic import arithmetic_facts, set_arithmetic\n"
        "with warnings.catch_warnings(record=True) as told:\n    warnings.simplefilter('always')\n"
        "    set_arithmetic('pinned'); set_arithmetic('pinned')\n"
        "assert len(told) == 1 and 'SkylakeX' in str(told[0].message), told\n"
        "assert arithmetic_facts()['arithmetic'] == 'native'"
    )
    child(code, env={"OPENBLAS_CORETYPE": "SkylakeX"})


def test_what_is_asked_of_numpy_is_asked_by_names_it_knows() -> None:
    assert "X86_V4" in pinned_variables("2.4.6")["NPY_DISABLE_CPU_FEATURES"].split()
    assert "AVX512F" in pinned_variables("2.3.1")["NPY_DISABLE_CPU_FEATURES"].split()
    if covered():
        told = child("import numpy", env=pinned_variables() | {"PYTHONWARNINGS": "default"}).stderr
        assert "not part of the dispatched" not in told


def test_only_a_processor_with_avx2_and_fma_is_covered() -> None:
    assert covered("processor : 0\nflags : fpu fma avx avx2\n")
    assert not covered("flags : fpu avx\n")
    assert not covered("Features : neon\n")


def test_kernels_of_other_processors_are_not_taken_for_pinned() -> None:
    assert is_pinned(PINNED)
    assert is_pinned({})
    for name, kernel in WIDE.items():
        assert not is_pinned(PINNED | {name: kernel})


def info(used: dict[str, str] | None) -> dict[str, Any]:
    """What a record says; None for one from before kernels were recorded."""
    return {} if used is None else {"kernels": used, "arithmetic": "pinned" if is_pinned(used) else "native"}


def test_a_mixture_of_kernels_is_said_and_counted() -> None:
    told = kernel_warning([info(PINNED), info(PINNED), info(WIDE)])
    assert told is not None
    assert "Mixed kernels" in told
    assert "2 with blas Haswell" in told
    assert "1 with blas SkylakeX" in told


def test_a_record_of_fewer_libraries_is_no_mixture() -> None:
    fewer = {key: kernel for key, kernel in PINNED.items() if key != "torch"}
    assert len(kernel_groups([info(fewer), info(PINNED), info({})])) == 1
    assert kernel_warning([info(fewer), info(PINNED)]) is None
    assert kernel_warning([]) is None


def test_native_and_unrecorded_kernels_are_said_too() -> None:
    assert "Not the pinned kernels" in str(kernel_warning([info(WIDE)]))
    assert "not recorded" in str(kernel_warning([info(None)]))
    assert "Mixed" in str(kernel_warning([info(None), info(PINNED)]))


def test_a_record_names_the_kernels_of_its_process() -> None:
    import numpy as np

    from geco_ray.ledger.provenance import provenance

    assert np.ones(2).sum() == 2
    assert {"blas", "numpy"} <= set(json.loads(json.dumps(provenance()["kernels"])))
