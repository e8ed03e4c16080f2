"""The price of pinned kernels: base models and one method's requests, pinned and native, in CPU seconds of one run.

    python benchmarks/arithmetic.py breast_cancer --data-dir DATA

Each side is a process of its own, in turn, ``--rounds`` times; the least of each side counts. Native leaves the choice
to the libraries, without what the environment of this process asks for; where OpenBLAS does not know the processor,
set ``--core SKYLAKEX`` to give it AVX-512 kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

from geco_ray.arithmetic import pinned_variables

SIDE = """
import json, sys, time
from pathlib import Path
from geco_ray.arithmetic import describe, kernels, set_arithmetic
set_arithmetic(sys.argv[1])
from geco_ray.cfe.base_model import train_bases
from geco_ray.cfe.data.datasets import load_dataset
from geco_ray.cfe.factuals import select_factuals
from geco_ray.cfe.generation import generate
from geco_ray.cfe.methods.base import METHODS, GenerationTask
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool
from geco_ray.device import limit_threads
limit_threads(1)
data = load_dataset(sys.argv[2], Path(sys.argv[3]) if sys.argv[3] else None)
pool, spent = Pool.of(data), {}
start = time.process_time()
bases = train_bases([BaseKey(data.name, seed) for seed in range(2026, 2051)], pool)
spent["25 base models"] = time.process_time() - start
task, rows = GenerationTask.of(data, bases[0], "paper"), select_factuals(bases[0], data.test)
for name in ("wachter", "roar_lime", "robx_balanced"):
    start = time.process_time()
    method = METHODS.get(name)
    generate(method.target(task, method.options()), task, rows.x[:16], rows.ids[:16].tolist(), [0] * 16)
    spent[f"{name}, 16 requests"] = time.process_time() - start
print(json.dumps({"kernels": describe(kernels()), "spent": spent}))
"""


def measure(arithmetic: str, dataset: str, data_dir: str, core: str) -> dict[str, object]:
    """Kernels and CPU seconds of one side."""
    env = {key: value for key, value in os.environ.items() if key not in pinned_variables()}
    if core and arithmetic == "native":
        env["OPENBLAS_CORETYPE"] = core
    words = [sys.executable, "-c", SIDE, arithmetic, dataset, data_dir]
    found: dict[str, object] = json.loads(subprocess.run(words, env=env, check=True, capture_output=True).stdout)
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--data-dir", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", default="", help="OPENBLAS_CORETYPE of the native side")
    given = parser.parse_args()
    least: dict[str, dict[str, float]] = {}
    for _ in range(given.rounds):
        for side in ("native", "pinned"):
            told = measure(side, given.dataset, given.data_dir, given.core)
            if side not in least:
                print(f"{side}: {told['kernels']}")
            kept = least.setdefault(side, {})
            for what, seconds in dict(told["spent"]).items():  # type: ignore[call-overload]
                kept[what] = min(seconds, kept.get(what, seconds))
    for what, native in least["native"].items():
        pinned = least["pinned"][what]
        print(f"{what:28s} native {native:7.2f} s   pinned {pinned:7.2f} s   {pinned / native:5.2f} x")


if __name__ == "__main__":
    main()
