"""Where a stage computes: one device per stage whatever the executor, and data and encoders as planned."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from geco_ray.errors import ResourceError, UserError
from geco_ray.experiments.base import WorkerContext, require_unchanged
from geco_ray.experiments.geco.cells import TrainCell
from geco_ray.plan.benchmark import Stage, stages
from geco_ray.plan.config import RunSettings
from geco_ray.registry import NoOptions
from geco_ray.runtime.executors import Wave, by_device, context_for, with_share
from geco_ray.runtime.session_folder import remove_folder, temporary_folder
from geco_ray.runtime.shares import check_device, local_gpus, note_on_unusable_gpus


def test_auto_keeps_small_networks_on_cpus_and_a_stated_device_is_kept() -> None:
    small, large = Stage("s", "trials", small=True), Stage("l", "actors")
    assert [context_for(stage, WorkerContext("r", device="auto")).device for stage in (small, large)] == ["cpu", "auto"]
    assert [context_for(stage, WorkerContext("r", device="cuda")).device for stage in (small, large)] == ["cuda"] * 2


def test_what_the_driver_computes_itself_stays_on_its_cpu() -> None:
    for device in ("auto", "cuda", "cpu"):
        assert context_for(Stage("d", "driver"), WorkerContext("r", device=device)).device == "cpu"


def test_the_small_networks_are_those_of_the_tabular_benchmark() -> None:
    assert [stage.name for stage in stages().values() if stage.small] == [
        "models", "counterfactuals", "validity",
    ]  # fmt: skip


def test_a_stage_that_trains_all_sizes_is_asked_for_each_pack() -> None:
    packs = [(train_cell("ola_cea"),), (train_cell("bert_c"),)]
    wave = Wave(stages()["train"], [], packs)
    places = {
        device: {context.device: found for context, found in by_device(wave, WorkerContext("r", device=device))}
        for device in ("auto", "cpu")
    }
    assert places["auto"] == {"cpu": packs[:1], "auto": packs[1:]}
    assert by_device(wave, WorkerContext("r", device="cuda"))[0][0].device == "cuda"


def train_cell(paradigm: str) -> TrainCell:
    return TrainCell("demo_binary_all", "f" * 8, "e", "f" * 8, paradigm, NoOptions(), 0, "corrected")


@pytest.mark.parametrize(("gpus", "device"), [(0.0, "cpu"), (0.5, "cuda")])
def test_a_worker_that_has_a_share_never_falls_back_on_a_core(gpus: float, device: str) -> None:
    assert with_share(WorkerContext("r", device="auto"), gpus).device == device
    assert with_share(WorkerContext("r", device="cpu"), gpus).device == "cpu"


def test_gpus_that_torch_cannot_use_are_not_counted_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("geco_ray.device.usable_gpus", lambda: 0)
    (tmp_path / "0000:01:00.0").mkdir()
    said = note_on_unusable_gpus(RunSettings(), tmp_path)
    assert said is not None
    assert said.startswith("note: this machine has 1 GPUs that torch")
    assert local_gpus(None, "auto") == 0
    assert note_on_unusable_gpus(RunSettings(device="cpu"), tmp_path) is None
    assert note_on_unusable_gpus(RunSettings(), tmp_path / "none") is None


def test_ray_shares_out_gpus_so_a_numbered_one_is_refused() -> None:
    with pytest.raises(UserError, match="CUDA_VISIBLE_DEVICES"):
        check_device(RunSettings(device="cuda:1", executor="ray"))


def test_what_changed_after_planning_is_refused() -> None:
    require_unchanged("encoder", "mine", "a", "a")
    with pytest.raises(UserError, match="'mine' has changed since the grid was planned"):
        require_unchanged("encoder", "mine", "a", "b")


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


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch says that it can use two."""
    monkeypatch.setattr("geco_ray.device.usable_gpus", lambda: 2)
    monkeypatch.setattr("geco_ray.device._prepare", lambda: None)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("settings", "fault", "message"),
    [
        (RunSettings(device="cuda", gpus=0), ResourceError, "--gpus 0 leaves none"),
        (RunSettings(gpus=3), ResourceError, "--gpus asks for 3 and this machine has 2"),
        (RunSettings(gpus=0, gpus_per_trial=0.5), ResourceError, "--gpus-per-trial asks for 0.5 GPU"),
        (RunSettings(gpus_per_actor=1.5), UserError, "--gpus-per-actor: a worker computes on one GPU"),
        (RunSettings(gpus_per_trial=2, address="auto"), UserError, "--gpus-per-trial: a worker computes on one GPU"),
        (RunSettings(device="cuda", gpus_per_trial=0), UserError, "more than 0 with --device cuda"),
    ],
)
def test_what_ray_would_wait_for_without_end_is_refused(
    settings: RunSettings, fault: type[Exception], message: str
) -> None:
    with pytest.raises(fault, match=message):
        check_device(settings)


@pytest.mark.usefixtures("two_gpus")
def test_what_the_gpus_have_room_for_is_accepted() -> None:
    for options in ({}, {"gpus": 1}, {"gpus_per_trial": 0.5, "gpus_per_actor": 1.0}, {"gpus": 0, "gpus_per_actor": 0}):
        check_device(RunSettings.model_validate(options))
    check_device(RunSettings(device="cuda", address="ray-head:6379"))
