"""Where a stage computes: one device per stage whatever the executor, and data and encoders as planned."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from geco_ray.errors import UserError
from geco_ray.experiments.base import Workplace, refuse_changed
from geco_ray.plan.config import RunSettings
from geco_ray.plan.expand import STAGES
from geco_ray.runtime.run import check_device, place_for
from geco_ray.runtime.session import remove_folder, temporary_folder


@pytest.mark.parametrize("stage", STAGES)
def test_auto_keeps_the_small_networks_on_cpus_and_a_stated_device_is_kept(stage: str) -> None:
    small = stage in ("models", "counterfactuals")
    assert place_for(stage, Workplace("r", device="auto")).device == ("cpu" if small else "auto")
    assert place_for(stage, Workplace("r", device="cuda")).device == "cuda"


def test_ray_shares_out_gpus_so_a_numbered_one_is_refused() -> None:
    with pytest.raises(UserError, match="CUDA_VISIBLE_DEVICES"):
        check_device(RunSettings(device="cuda:1", executor="ray"))


def test_what_changed_after_planning_is_refused() -> None:
    refuse_changed("encoder", "mine", "a", "a")
    with pytest.raises(UserError, match="'mine' has changed since the grid was planned"):
        refuse_changed("encoder", "mine", "a", "b")


def test_only_our_own_abandoned_folders_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path if len(str(tmp_path)) < 30 else Path("/tmp")
    monkeypatch.setattr("tempfile.tempdir", str(base))
    mine = temporary_folder()
    theirs = base / f"{mine.name[: len('geco-ray-0-')]}thesis"
    theirs.mkdir(exist_ok=True)
    try:
        other = temporary_folder()
        assert mine.is_dir()  # alive, its marker is locked
        assert theirs.is_dir()
        remove_folder(other)
        remove_folder(mine)
        assert not mine.exists()
    finally:
        theirs.rmdir()


def test_only_processes_of_that_ray_end_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("processes are followed by /proc")
    folder = temporary_folder()
    (folder / "raylet.out").write_text("a line")
    ours = subprocess.Popen(["sleep", "60"], env=os.environ | {"GECO_RAY_SESSION": str(folder)})
    of_another = subprocess.Popen(["sleep", "60"], env=os.environ | {"GECO_RAY_SESSION": f"{folder}x"})
    reader = subprocess.Popen(["tail", "-f", str(folder / "raylet.out")], stdout=subprocess.DEVNULL)
    try:
        remove_folder(folder)
        assert ours.wait(10) == -9
        assert of_another.poll() is None
        assert reader.poll() is None
        assert not folder.exists()
    finally:
        for process in (ours, of_another, reader):
            process.kill()
            process.wait()
