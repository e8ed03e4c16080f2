"""Whole files: all of the new content or all of the old, whatever happens in between."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from geco_ray.errors import UserError
from geco_ray.files.atomic import LEFTOVER, write_whole
from geco_ray.files.checksums import not_the_pinned_file

DURABLE = pytest.mark.parametrize("durable", [False, True])


@DURABLE
def test_a_file_is_made_with_its_folder_and_replaced(durable: bool, tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.txt"
    for content in (b"old", b"", b"newer"):
        write_whole(path, content, durable=durable)
        assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


@DURABLE
@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_stops_a_write_leaves_the_old_file_and_no_other(
    durable: bool, fault: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.txt"
    write_whole(path, b"old")

    def stop(*_: Any) -> None:
        raise fault

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(type(fault)):
        write_whole(path, b"new", durable=durable)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@DURABLE
def test_only_a_durable_write_waits_for_the_disk_and_before_the_renaming(
    durable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    flush, rename = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (steps.append("flush"), flush(handle))[1])
    monkeypatch.setattr(Path, "replace", lambda *paths: (steps.append("rename"), rename(*paths))[1])
    write_whole(tmp_path / "c.txt", b"x", durable=durable)
    assert steps == (["flush", "rename"] if durable else ["rename"])


def test_a_temporary_file_says_who_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(Path, "replace", lambda source, target: seen.append(source.name))
    write_whole(tmp_path / "c.txt", b"x")
    match = LEFTOVER.match(seen[0])
    assert match is not None
    assert (match["host"], match["pid"]) == (socket.gethostname(), str(os.getpid()))


def test_the_rights_of_a_file_are_those_of_any_new_file(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"")
    (tmp_path / "b").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_file_that_is_not_the_pinned_one_is_named_with_both_sums_and_the_remedy() -> None:
    error = not_the_pinned_file(
        Path("my data/t.csv"), found="1" * 64, expected="2" * 64, then="and wait", kind=UserError
    )
    assert isinstance(error, UserError)
    for part in ("my data/t.csv: ", "1" * 64, "2" * 64, "`rm 'my data/t.csv'`, and wait."):
        assert part in str(error)
