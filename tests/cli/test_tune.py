"""``geco-ray tune`` on a table of one's own: what it writes, and that grids then take the value from there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from geco_ray.cfe.tuning import read_entries

TRIED = ("tune", "clinic", "--method", "wachter", "--protocol", "corrected")


def command(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key not in ("GECO_RAY_DATA", "RAY_ADDRESS")}
    return subprocess.run(
        [sys.executable, "-m", "geco_ray", *words, "--data-dir", "data"], cwd=cwd, env=env, text=True,
        capture_output=True, timeout=200, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Path:
    """A folder with a table of one's own (Diabetes' under another name), tuned once."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "data").mkdir()
    (folder / "data" / "clinic.csv").write_bytes((data_dir / "tabular" / "diabetes.csv").read_bytes())
    (folder / "data" / "clinic.yaml").write_text("name: clinic\ntarget: Outcome\nfavourable: ['0']\nadverse: ['1']\n")
    done = command(*TRIED, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "wachter, protocol corrected, seeding paper: trade_off" in done.stdout
    assert "clinic.tuned.json" in done.stdout
    return folder


def test_the_record_says_what_it_hangs_on(desk: Path) -> None:
    (entry,) = read_entries(desk / "data" / "clinic.tuned.json").values()
    assert entry.key == ("wachter", "corrected", "paper", "clinic")
    assert entry.made_with["arithmetic"] == "pinned"
    assert "torch" in entry.made_with["packages"]
    assert len(entry.row_ids) == len(entry.probabilities) > 0


def test_a_grid_takes_the_value_from_the_record_and_refuses_a_stale_one(desk: Path) -> None:
    grid = "cfe:\n  datasets: clinic\n  base_seeds: [2026]\n  families: [bounded_parameter]\n  variants: 1\n" + (
        "  methods: [wachter]\n  protocol: corrected\n  seeding: paper\n"
    )
    (desk / "own.yaml").write_text(grid)
    assert command("plan", "./own.yaml", cwd=desk).returncode == 0
    card = desk / "data" / "clinic.yaml"
    card.write_text(card.read_text() + "drop: [Age]\n")
    refused = command("plan", "./own.yaml", cwd=desk)
    assert refused.returncode == 2
    assert "belongs to other data" in refused.stderr
    assert "geco-ray tune clinic --protocol corrected --seeding paper --data-dir" in refused.stderr


def test_a_dry_run_writes_nothing_and_a_wrong_word_is_refused(desk: Path) -> None:
    before = (desk / "data" / "clinic.tuned.json").read_bytes()
    done = command(*TRIED, "--dry-run", "--json", cwd=desk)
    assert json.loads(done.stdout)["file"] is None
    assert (desk / "data" / "clinic.tuned.json").read_bytes() == before
    for words in (("--method", "kdtree"), ("--protocol", "papper"), ("--arithmetic", "quick")):
        assert command("tune", "clinic", *words, cwd=desk).returncode == 2
