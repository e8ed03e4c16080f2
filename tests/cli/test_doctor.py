"""`geco-ray doctor`: what is there and where, what is missing and how to get it; nothing is created."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from geco_ray.cli import main
from geco_ray.cli.doctor import health


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GECO_RAY_DATA", raising=False)
    monkeypatch.delenv("GECO_RAY_OFFLINE", raising=False)
    monkeypatch.setenv("GECO_RAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *words, **more: None)


def test_what_is_missing_is_told_with_the_command_that_gets_it(tmp_path: Path) -> None:
    facts = health(str(tmp_path / "runs"))
    assert facts["binary_gender_all"].endswith(
        "a run downloads it; beforehand: geco-ray data download binary_gender_all"
    )
    assert facts["diabetes"] == "missing: geco-ray data download diabetes"
    assert facts["heloc"] == "missing: geco-ray data download heloc --accept-terms"
    assert facts["breast_cancer"] == "in scikit-learn"
    assert "hf download" in facts["bert-base-uncased"]
    assert str(tmp_path / "hub") in facts["bert-base-uncased"]
    assert facts["cache"] == str(tmp_path / "cache")
    assert "will be made, writable" in facts["run folder"]
    assert not list(tmp_path.iterdir())


def test_data_are_found_where_a_run_would_find_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("geco/binary_gender_all/train.jsonl", "geco/binary_gender_all/test.jsonl", "tabular/diabetes.csv"):
        (tmp_path / "data" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / file).write_text("")
    facts = health(str(tmp_path), tmp_path / "data")
    assert facts["binary_gender_all"] == str(tmp_path / "data" / "geco" / "binary_gender_all")
    assert facts["diabetes"] == str(tmp_path / "data" / "tabular" / "diabetes.csv")
    # A folder that is named is the only one: nothing is downloaded beside it.
    to = f"--to {tmp_path / 'data'}"
    assert facts["non_binary_gender_all"] == f"missing: geco-ray data download non_binary_gender_all {to}"
    monkeypatch.setenv("GECO_RAY_DATA", str(tmp_path / "data"))
    assert health(str(tmp_path))["diabetes"] == facts["diabetes"]


def test_the_run_folder_and_its_free_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=12_300_000_000))
    assert health(str(tmp_path))["run folder"] == f"{tmp_path}: is there, writable, 12.3 GB free"
    (tmp_path / "file").write_text("")
    assert "cannot be written" in health(str(tmp_path / "file" / "runs"))["run folder"]
    monkeypatch.setattr(os, "access", lambda *words: False)
    assert "give another with --root" in health(str(tmp_path))["run folder"]


def test_a_data_folder_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--data-dir", "nowhere"])
    assert ended.value.code == 2
    assert "there is no such folder" in capsys.readouterr().err
