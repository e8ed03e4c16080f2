"""Proofs in the grid: blocks that are cells of their own, put together to one whole table of counterfactuals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from geco_ray.ledger import Ledger, Record


def test_blocks_are_proven_on_their_own_and_come_together_whole(data_dir: Path, tmp_path: Path) -> None:
    grid = [
        "cfe", "cfe.datasets=[diabetes]", "cfe.base_seeds=[2026]", "cfe.families=[bounded_parameter]", "cfe.variants=1",
        "cfe.methods=[{name: apas, proof: budget}]", "--data-dir", str(data_dir), "--root", str(tmp_path),
        "--executor", "inline",
    ]  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "geco_ray.grid", *grid], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    ledger = Ledger(tmp_path)
    kinds: dict[str, list[Record]] = {}
    for record in ledger.records("counterfactuals"):
        kinds.setdefault(record.params["kind"], []).append(record)
    assert {kind: len(records) for kind, records in kinds.items()} == {"proof": 25, "proved": 1}
    (proved,) = kinds["proved"]
    table = ledger.table(proved)
    assert table["factual_id"].to_pylist() == list(range(53))
    assert sum(record.rows for record in kinds["proof"]) == 53
    assert set(proved.upstream) >= {record.id for record in kinds["proof"]}
    assert table["proof_status"].to_pylist().count("optimal") >= 40  # the bar is 75 % of the requests
    gaps = zip(table["l1_distance"].to_pylist(), table["l1_lower_bound"].to_pylist(), strict=True)
    assert all(lower <= distance + 1e-9 for distance, lower in gaps)
