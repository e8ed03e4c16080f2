"""One thread for every BLAS, also for one that is loaded already: else sums differ between executors and machines."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import numpy as np, threadpoolctl
threadpoolctl.threadpool_limits(2, user_api="blas")
from geco_ray.device import limit_threads
limit_threads(1)
print(sorted({library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"}))
"""


def test_a_blas_that_is_loaded_is_limited_too() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[1]"
