"""Damage that only reading shows: the run that meets it sets it aside, and the next run repairs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

GRID = [
    "demo", "only=cfe", "cfe.base_seeds=[2026]", "cfe.variants=2", "cfe.families=[bounded_parameter]",
    "cfe.methods=[kdtree]", "--executor", "inline", "--root", "runs",
]  # fmt: skip


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "geco_ray.grid", *GRID]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_flipped_byte_costs_one_run(tmp_path: Path) -> None:
    assert run(tmp_path).returncode == 0
    (table,) = (tmp_path / "runs/cells/counterfactuals").glob("*.parquet")
    whole = table.read_bytes()
    table.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])  # the size stays, so a scan sees nothing
    for record in (tmp_path / "runs/cells/validity").glob("*.json"):
        record.unlink()

    met = run(tmp_path)
    assert met.returncode == 1
    assert table.name in met.stderr
    assert not table.exists()

    healed = run(tmp_path)
    assert healed.returncode == 0, healed.stderr
    assert table.read_bytes() == whole
    assert [path.name for path in (tmp_path / "runs/quarantine/counterfactuals").glob("*.parquet")] == [table.name]
