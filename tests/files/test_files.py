"""What lies on the disk before, during and after a download, the offline switch, the cache, the GECO files."""

from __future__ import annotations

import hashlib
import http.server
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from geco_ray.errors import StorageError, UserError
from geco_ray.files import download
from geco_ray.files.download import DownloadError, fetch, is_offline, verify
from geco_ray.files.roots import cache_dir
from geco_ray.geco.data import sources


def leftovers(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir() if path != target)


def test_the_checksum_may_be_given_in_capitals(server: Any, tmp_path: Path) -> None:
    assert server.get(tmp_path / "data.bin", sha256=server.SHA256.upper()).read_bytes() == server.BODY


def test_a_wrong_file_on_disk_is_refused_and_its_removal_command_works(server: Any, tmp_path: Path) -> None:
    target = tmp_path / "it's here" / "data.bin"
    target.parent.mkdir()
    target.write_bytes(b"older release")
    with pytest.raises(DownloadError) as caught:
        server.get(target)
    assert server.requests == []
    assert str(target) in str(caught.value)
    assert hashlib.sha256(b"older release").hexdigest() in str(caught.value)
    assert server.SHA256 in str(caught.value)
    command = re.search(r"`(rm .*)`", str(caught.value))
    assert command is not None
    subprocess.run(command[1], shell=True, check=True)
    assert server.get(target).read_bytes() == server.BODY


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_offline_never_asks_and_uses_what_is_there(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    offline = True if how == "argument" else None
    if how == "environment":
        monkeypatch.setenv("GECO_RAY_OFFLINE", "1")
    target = tmp_path / "folder" / "data.bin"
    with pytest.raises(DownloadError, match="switched off") as caught:
        fetch(server.url, server.SHA256, target, offline=offline)
    assert str(target) in str(caught.value)
    assert not target.parent.exists()
    target.parent.mkdir()
    target.write_bytes(server.BODY)
    assert fetch(server.url, server.SHA256, target, offline=offline) == target
    assert server.requests == []


def test_the_argument_outweighs_the_environment(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GECO_RAY_OFFLINE", "1")
    assert fetch(server.url, server.SHA256, tmp_path / "data.bin", offline=False).read_bytes() == server.BODY


@pytest.mark.parametrize(("value", "meaning"), [("1", True), ("Yes", True), ("0", False), ("", False), ("off", False)])
def test_the_offline_switch_reads_yes_and_no(monkeypatch: pytest.MonkeyPatch, value: str, meaning: bool) -> None:
    monkeypatch.setenv("GECO_RAY_OFFLINE", value)
    assert is_offline() is meaning


def test_a_misspelt_offline_switch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GECO_RAY_OFFLINE", "ja")
    with pytest.raises(UserError, match="GECO_RAY_OFFLINE"):
        is_offline()


def test_the_cache_dir_can_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GECO_RAY_CACHE", str(tmp_path / "c"))
    assert cache_dir() == tmp_path / "c"


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="XDG is the rule of other platforms")
def test_the_cache_dir_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "geco_ray"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_dir() == tmp_path / "home" / ".cache" / "geco_ray"


def test_a_folder_that_cannot_be_made_is_named(server: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"data\.bin: cannot be written"):
        server.get(tmp_path / "file" / "data.bin")


def test_a_full_disk_is_of_the_disk_and_leaves_no_target(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    target = tmp_path / "data.bin"
    with pytest.raises(StorageError, match="No space left"):
        server.get(target)
    assert not target.exists()


def test_an_address_of_another_kind_is_a_fault_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="http"):
        fetch("file:///etc/hosts", "0" * 64, tmp_path / "x")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        verify(tmp_path, "0" * 64)


def test_many_at_once_agree_on_one_right_file(server: Any, tmp_path: Path) -> None:
    def late(handler: http.server.BaseHTTPRequestHandler) -> None:
        time.sleep(0.05)
        server.whole(handler)

    server.plans = [late]
    target = tmp_path / "data.bin"
    faults: list[BaseException] = []

    def one() -> None:
        try:
            server.get(target)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert faults == []
    assert target.read_bytes() == server.BODY
    assert leftovers(target) == []


def test_a_killed_download_leaves_no_target_and_is_gone_on_with(server: Any, tmp_path: Path) -> None:
    target = tmp_path / "data.bin"

    def half_then_silent(handler: http.server.BaseHTTPRequestHandler) -> None:
        server.reply(handler, 200, {"Content-Length": len(server.BODY)}, server.BODY[:200_000])
        server.silent(handler)

    server.plans = [half_then_silent, server.ranged]
    code = "import sys, pathlib, geco_ray.files.download as d; d.fetch(*sys.argv[1:3], pathlib.Path(sys.argv[3]))"
    child = subprocess.Popen([sys.executable, "-c", code, server.url, server.SHA256, str(target)])
    part = tmp_path / f"data.bin.{server.SHA256[:12]}.part"
    for _ in range(1000):
        if part.exists() and part.stat().st_size:
            break
        time.sleep(0.01)
    child.kill()
    child.wait(10)
    have = part.stat().st_size
    assert 0 < have < len(server.BODY)
    assert not target.exists()
    assert server.get(target).read_bytes() == server.BODY
    assert server.requests[-1][1] == f"bytes={have}-"


def test_the_geco_files_come_from_the_pinned_commit_into_the_cache(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = sources.file_url("binary_gender_all", "test")
    assert address.startswith("https://raw.githubusercontent.com/braindatalab/gecobench/f0907c69d95353016556a6cbd0c5")
    assert address.endswith("/data/dataset/binary_gender_all/test.jsonl")
    monkeypatch.setenv("GECO_RAY_CACHE", str(tmp_path))
    base = server.url.removesuffix("/data.bin")
    monkeypatch.setattr(sources, "file_url", lambda task, split: f"{base}/{task}/{split}.jsonl")
    monkeypatch.setattr(sources, "SHA256", dict.fromkeys(sources.SHA256, server.SHA256))
    _, files = (sources.fetch_task(task) for task in ("binary_gender_all", "binary_gender_subj"))
    assert files["test"] == tmp_path / "geco" / "binary_gender_subj" / "test.jsonl"
    assert all(path.read_bytes() == server.BODY for path in files.values())
    assert sorted(path for path, _ in server.requests) == [
        f"/{task}/{split}.jsonl" for task in ("binary_gender_all", "binary_gender_subj") for split in ("test", "train")
    ]
    with pytest.raises(UserError, match="binary_gender_all"):
        sources.fetch_task("binary_gender_al")


def test_loading_a_geco_task_downloads_it_unless_a_folder_is_given(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from geco_ray.geco.data.sources import find_files

    monkeypatch.setenv("GECO_RAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GECO_RAY_DATA", raising=False)
    monkeypatch.setattr(sources, "file_url", lambda task, split: server.url)
    monkeypatch.setattr(sources, "SHA256", dict.fromkeys(sources.SHA256, server.SHA256))
    with pytest.raises(UserError, match="data-dir"):
        find_files("binary_gender_all", tmp_path / "mine", ())
    assert server.requests == []
    server.plans = [server.whole, server.cut(1000)]
    with monkeypatch.context() as patch:
        patch.setattr(download, "fetch", lambda *a, **k: fetch(*a, **{**k, "retries": 0}))
        with pytest.raises(UserError, match=r"looked for.*cache.*data-dir"):
            find_files("binary_gender_all", None, ())
    server.plans = [server.ranged]
    files = find_files("binary_gender_all", None, ())
    assert {split: path.read_bytes() for split, path in files.items()} == {"train": server.BODY, "test": server.BODY}
    assert server.requests[-1][1] == "bytes=1000-"  # the half of the pair that was there stayed
