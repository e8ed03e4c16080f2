"""`geco-ray doctor`: what is there and where, what is missing and how to get it; nothing is created."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from geco_ray.cli import main
from geco_ray.cli.health import machine
from geco_ray.cli.health.doctor import Health, health
from geco_ray.plan.asset import Asset

PAGE = Path(__file__).parents[2] / "docs" / "json.md"


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GECO_RAY_DATA", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GECO_RAY_OFFLINE", "1")
    monkeypatch.setenv("GECO_RAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub_home"))


def assets(found: Health) -> dict[str, Asset]:
    return {asset.name: asset for asset in found.assets}


def test_what_is_missing_is_told_with_the_command_that_gets_it(tmp_path: Path) -> None:
    found = health(str(tmp_path / "runs"))
    assert "diabetes is missing: geco-ray data download diabetes" in found.remedies
    assert "heloc is missing: geco-ray data download heloc --accept-terms" in found.remedies
    assert assets(found)["breast_cancer"].found == "in scikit-learn"
    encoder = assets(found)["bert-base-uncased"]
    assert encoder.found is None
    assert re.fullmatch(r"hf download bert-base-uncased --revision [0-9a-f]{40}", encoder.get or "")
    assert found.folders["cache"] == str(tmp_path / "cache")
    assert not list(tmp_path.iterdir())


def test_what_a_run_downloads_is_told_where_the_network_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GECO_RAY_OFFLINE", "0")
    for answers in (True, False):
        monkeypatch.setattr(machine, "reachable", lambda answers=answers: dict.fromkeys(machine.HOSTS, answers))
        found = health()
        told = next(line for line in found.remedies if line.startswith("binary_gender_all"))
        assert ("or a run that needs it downloads it" in told) == answers
        assert found.network == dict.fromkeys(machine.HOSTS, answers)
    monkeypatch.setenv("GECO_RAY_OFFLINE", "1")
    assert health().network == {}


def test_data_are_found_where_a_run_would_find_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("geco/binary_gender_all/train.jsonl", "geco/binary_gender_all/test.jsonl", "tabular/diabetes.csv"):
        (tmp_path / "data" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / file).write_text("")
    found = assets(health(str(tmp_path), tmp_path / "data"))
    assert found["binary_gender_all"].found == str(tmp_path / "data" / "geco" / "binary_gender_all")
    assert found["diabetes"].found == str(tmp_path / "data" / "tabular" / "diabetes.csv")
    # A folder that is named is the only one: nothing is downloaded beside it.
    missing = found["non_binary_gender_all"]
    assert missing.get == f"geco-ray data download non_binary_gender_all --to {tmp_path / 'data'}"
    assert not missing.fetched
    monkeypatch.setenv("GECO_RAY_DATA", str(tmp_path / "data"))
    assert assets(health(str(tmp_path)))["diabetes"].found == found["diabetes"].found


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "HF_HOME"])
def test_an_encoder_in_the_hub_s_cache_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    revision = str(assets(health())["bert-base-uncased"].get).split()[-1]
    monkeypatch.setenv(variable, str(tmp_path / "there"))
    cache = tmp_path / "there" / ("hub" if variable == "HF_HOME" else "")
    snapshot = cache / "models--bert-base-uncased" / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    assert assets(health())["bert-base-uncased"].found is None  # its weights have not arrived
    (snapshot / "model.safetensors").write_bytes(b"")
    assert assets(health())["bert-base-uncased"].found == str(snapshot)


def test_the_run_folder_and_its_free_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=12_300_000_000))
    folders = health(str(tmp_path)).folders
    assert (folders["runs_exists"], folders["runs_writable"], folders["runs_free_gb"]) == (True, True, 12.3)
    (tmp_path / "file").write_text("")
    blocked = health(str(tmp_path / "file" / "runs"))
    assert blocked.folders["runs_writable"] is False
    assert any("give another run folder with --root" in line for line in blocked.remedies)
    monkeypatch.setattr(os, "access", lambda *words: False)
    assert health(str(tmp_path)).folders["runs_writable"] is False


def test_a_data_folder_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--data-dir", "nowhere"])
    assert ended.value.code == 2
    assert "there is no such folder" in capsys.readouterr().err


def test_a_gpu_that_torch_cannot_use_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA A100-SXM4-40GB, 40960'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(machine, "torch_build", lambda: "cpu")
    found = health()
    assert found.machine["gpus"] == [{"name": "NVIDIA A100-SXM4-40GB", "memory_gb": 42.9}]
    assert any("this torch is built for CPUs" in line for line in found.remedies)
    program.write_text("#!/bin/sh\nexit 9\n")  # a driver that does not answer
    assert health().machine["gpus"] == []


@pytest.mark.parametrize(
    ("version", "requires", "build"),
    [
        ("2.13.0+cpu", [], "cpu"),
        ("2.13.0+cu128", [], "cuda"),
        ("2.13.0+rocm7.1", [], "rocm"),
        ("2.13.0", ["nvidia-cublas-cu12==12.8.4.1; platform_system == 'Linux'"], "cuda"),
        ("2.13.0", ["sympy"], "cpu"),
    ],
)
def test_what_torch_is_built_for(
    monkeypatch: pytest.MonkeyPatch, version: str, requires: list[str], build: str
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: version)
    monkeypatch.setattr("importlib.metadata.requires", lambda name: requires)
    assert machine.torch_build() == build


def test_a_network_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda address, timeout: time.sleep(2))
    started = time.monotonic()
    assert machine.reachable(["a", "b"], seconds=0.1) == {"a": False, "b": False}
    assert time.monotonic() - started < 1


def test_memory_is_what_the_kernel_tells_or_unknown(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:       24000000 kB\nMemAvailable:   12000000 kB\n")
    told = machine.memory(tmp_path / "meminfo")
    assert (told["memory_gb"], told["memory_available_gb"]) == (24.6, 12.3)
    (tmp_path / "meminfo").write_text("nonsense")
    assert machine.memory(tmp_path / "meminfo")["memory_gb"] is None


def test_numbers_are_numbers_and_every_key_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert isinstance(told["machine"]["cpus"], int)
    keys = {*told, *told["machine"], *told["folders"], *next(iter(told["assets"].values()))}
    page = PAGE.read_text(encoding="utf-8")
    assert not {key for key in keys if f"`{key}`" not in page}
    assert not {key for key in keys if not re.fullmatch(r"[a-z0-9_]+", key)}


def test_neither_torch_nor_ray_is_imported() -> None:
    code = (
        "import sys; from geco_ray.cli.health.doctor import health; health(); "
        "print([name for name in ('torch', 'ray', 'transformers', 'huggingface_hub', 'pandas') if name in sys.modules])"
    )
    words = [sys.executable, "-c", code]
    told = subprocess.run(words, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert told.stdout.strip() == "[]"
