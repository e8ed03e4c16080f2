"""One driver per run folder: the second is refused by name, the dead are succeeded, and two never win."""

from __future__ import annotations

import contextlib
import errno
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import geco_ray.runtime.lease as lease_module
from geco_ray.errors import GecoRayWarning, LeaseError, StorageError
from geco_ray.ledger.storage import LocalStorage, open_storage
from geco_ray.runtime.lease import lease, lease_holder, refuse_if_held

HOST = socket.gethostname()


def dead_pid() -> int:
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def sign(folder: Path, content: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "lease.json").write_text(content)
    return folder / "lease.json"


def test_a_lease_names_its_holder_and_goes_with_it(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "run")
    with lease(storage):
        assert json.loads((tmp_path / "run" / "lease.json").read_text()) == {"host": HOST, "pid": os.getpid()}
    assert list((tmp_path / "run").iterdir()) == []


def test_it_goes_also_when_the_run_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lease(open_storage(tmp_path)):
        1 / 0  # noqa: B018
    assert list(tmp_path.iterdir()) == []
    with lease(open_storage(tmp_path)):
        pass


def test_a_second_driver_is_refused_naming_host_and_process(tmp_path: Path) -> None:
    with lease(open_storage(tmp_path)):
        code = (
            "import sys; from geco_ray.runtime.lease import lease; from geco_ray.ledger.storage import open_storage\n"
            "with lease(open_storage(sys.argv[1])): print('both')"
        )
        run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
        assert run.returncode != 0
        assert "both" not in run.stdout
        assert (
            f"LeaseError: {tmp_path}: process {os.getpid()} on {HOST} works on this run folder"
            in run.stderr.replace("geco_ray.errors.", "")
        )
        assert (tmp_path / "lease.json").is_file()
        with pytest.raises(LeaseError), lease(open_storage(tmp_path)):
            pass
    assert LeaseError.exit_code == 4


def test_a_bucket_is_not_guarded() -> None:
    storage = open_storage("mock:///bucket/run")
    with lease(storage), lease(storage):
        assert storage.names("") == {}


STALE = {
    "dead": lambda: json.dumps({"host": HOST, "pid": dead_pid()}),
    # The number of a dead driver was given to another process: here to ours, and to that of the system itself.
    "reused": lambda: json.dumps({"host": HOST, "pid": os.getpid()}),
    "reused-1": lambda: json.dumps({"host": HOST, "pid": 1}),
    "empty": lambda: "",
    "cut": lambda: '{"host": "a',
    "foreign": lambda: "some notes",
    "list": lambda: "[1, 2]",
    "null": lambda: "null",
    "no-pid": lambda: '{"host": "elsewhere"}',
    "text-pid": lambda: '{"host": "elsewhere", "pid": "x"}',
    "endless-pid": lambda: '{"host": "elsewhere", "pid": 1e400}',
    "negative-pid": lambda: '{"host": "elsewhere", "pid": -1}',
    "list-host": lambda: '{"host": ["elsewhere"], "pid": 3}',
    "deep": lambda: "[" * 4096,
}


@pytest.mark.parametrize("kind", STALE)
def test_a_lease_without_a_living_holder_is_taken_over(kind: str, tmp_path: Path) -> None:
    path = sign(tmp_path, STALE[kind]())
    with lease(open_storage(tmp_path)):
        assert json.loads(path.read_text()) == {"host": HOST, "pid": os.getpid()}
    assert not path.exists()


ELSEWHERE = json.dumps({"host": "elsewhere", "pid": 77})


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases that are touched, and given up, in parts of a second."""
    for name, seconds in (("BEAT_SECONDS", 0.1), ("WAIT_SECONDS", 1.0), ("_EARLY_SECONDS", 0.3)):
        monkeypatch.setattr(lease_module, name, seconds)


@contextlib.contextmanager
def touched(path: Path) -> Iterator[None]:
    """A holder on another host that shows that it lives."""
    ended = threading.Event()

    def touch() -> None:
        while not ended.wait(0.05):
            os.utime(path)

    thread = threading.Thread(target=touch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.usefixtures("quick")
def test_a_lease_of_another_host_is_respected_while_its_holder_shows_itself(tmp_path: Path) -> None:
    path = sign(tmp_path, ELSEWHERE)
    with touched(path):
        for take in (refuse_if_held, lambda storage: lease(storage).__enter__()):
            with pytest.raises(LeaseError, match=f"process 77 on elsewhere.*delete {path}.*silent for"):
                take(open_storage(tmp_path))
    assert path.read_text() == ELSEWHERE


@pytest.mark.usefixtures("quick")
def test_a_lease_of_a_host_that_is_gone_is_taken_over_after_a_wait_that_is_said(tmp_path: Path) -> None:
    path = sign(tmp_path, ELSEWHERE)
    refuse_if_held(open_storage(tmp_path))
    assert path.read_text() == ELSEWHERE
    started = time.monotonic()
    taken = lease(open_storage(tmp_path))
    with pytest.warns(GecoRayWarning, match=r"process 77 on elsewhere held .* waiting 1 s"):
        taken.__enter__()
    assert time.monotonic() - started >= 1
    assert json.loads(path.read_text()) == {"host": HOST, "pid": os.getpid()}
    taken.__exit__(None, None, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("quick")
def test_a_holder_touches_its_lease(tmp_path: Path) -> None:
    with lease(open_storage(tmp_path)):
        first = (tmp_path / "lease.json").stat().st_mtime_ns
        time.sleep(0.5)
        assert (tmp_path / "lease.json").stat().st_mtime_ns > first


@pytest.mark.usefixtures("quick")
def test_a_holder_whose_lease_was_taken_over_is_told_and_writes_nothing_more(tmp_path: Path) -> None:
    lost: list[LeaseError] = []
    storage, other = open_storage(tmp_path), json.dumps({"host": "elsewhere", "pid": 78})
    with lease(storage, lost.append):
        storage.write("before", b"1")
        (tmp_path / "lease.json").unlink()
        sign(tmp_path, other)
        with pytest.raises(LeaseError, match="another driver has taken the run folder over"):
            storage.write("after", b"2")
        time.sleep(0.5)
        assert len(lost) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["before", "lease.json"]
    assert (tmp_path / "lease.json").read_text() == other
    storage.write("after", b"3")  # the guard is that of the lease


def test_a_stale_lease_is_cleared_and_that_of_a_quicker_taker_is_left(tmp_path: Path) -> None:
    path = sign(tmp_path, ELSEWHERE)
    handle = os.open(path, os.O_RDONLY)
    path.unlink()
    sign(tmp_path, '{"host": "quicker", "pid": 5}')
    lease_module._clear(path, handle)
    os.close(handle)
    assert [entry.name for entry in tmp_path.iterdir()] == ["lease.json"]
    assert "quicker" in path.read_text()


@pytest.mark.parametrize(("pid", "free"), [(os.getpid, False), (dead_pid, True)], ids=["living", "dead"])
def test_without_locks_the_process_number_decides(
    pid: Any, free: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, "no locks here")

    monkeypatch.setattr("fcntl.flock", fail)
    sign(tmp_path, json.dumps({"host": HOST, "pid": pid()}))
    with contextlib.nullcontext() if free else pytest.raises(LeaseError), lease(open_storage(tmp_path)):
        pass


def test_a_lease_deleted_by_hand_and_taken_by_another_is_not_removed_by_the_first(tmp_path: Path) -> None:
    first = lease(open_storage(tmp_path))
    first.__enter__()
    (tmp_path / "lease.json").unlink()
    with lease(open_storage(tmp_path)):
        first.__exit__(None, None, None)
        assert (tmp_path / "lease.json").is_file()
        with pytest.raises(LeaseError), lease(open_storage(tmp_path)):
            pass


def test_leftovers_of_the_dead_are_swept_once_the_lease_is_held(tmp_path: Path) -> None:
    leftover = tmp_path / "cells" / "train" / f".a.json.{HOST}.{dead_pid()}.5.tmp"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"half")
    with lease(open_storage(tmp_path)):
        assert not leftover.exists()


def test_a_folder_that_cannot_be_written_is_a_matter_of_storage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="--root"), lease(open_storage(tmp_path / "file")):
        pass


def test_a_full_disk_leaves_no_lease_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    with pytest.raises(StorageError, match="No space left"), lease(open_storage(tmp_path)):
        pass
    assert list(tmp_path.iterdir()) == []


# --- races ---


def _contend(root: str, start: Any, wins: Any, clashes: Any, seconds: float) -> None:
    storage, guard = open_storage(root), Path(root) / "inside"
    start.wait()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(LeaseError), lease(storage):
            try:
                os.close(os.open(guard, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                with clashes.get_lock():
                    clashes.value += 1
                continue
            with wins.get_lock():
                wins.value += 1
            guard.unlink()


@pytest.mark.parametrize("content", ["", json.dumps({"host": HOST, "pid": 2**22 + 5})], ids=["fresh", "stale"])
def test_of_many_takers_only_one_is_inside(content: str, tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    if content:
        sign(tmp_path, content)
    start, wins, clashes = context.Barrier(4), context.Value("i", 0), context.Value("i", 0)
    takers = [context.Process(target=_contend, args=(str(tmp_path), start, wins, clashes, 1.0)) for _ in range(4)]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()
    assert clashes.value == 0
    assert wins.value > 10
    assert [path.name for path in tmp_path.iterdir()] == []


def _hold(root: str, ready: Any) -> None:
    with lease(open_storage(root)):
        ready.set()
        time.sleep(60)


def test_a_killed_driver_is_succeeded_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(str(tmp_path), ready))
    holder.start()
    assert ready.wait(20)
    with pytest.raises(LeaseError, match=f"process {holder.pid} on"), lease(open_storage(tmp_path)):
        pass
    assert holder.pid is not None
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    assert (tmp_path / "lease.json").is_file()
    with lease(open_storage(tmp_path)):
        assert json.loads((tmp_path / "lease.json").read_text())["pid"] == os.getpid()


def test_the_holder_is_seen_without_touching_the_lease(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "run")
    assert lease_holder(storage) is None
    assert not storage.folder.exists()
    with lease(storage):
        assert lease_holder(storage) == (HOST, os.getpid())
    assert lease_holder(storage) is None
    path = storage.folder / "lease.json"
    path.write_text(json.dumps({"host": HOST, "pid": dead_pid()}))  # its process is gone
    assert lease_holder(storage) is None
    path.write_text(json.dumps({"host": "elsewhere", "pid": 3}))
    assert lease_holder(storage) == ("elsewhere", 3)
    path.write_text("{")
    assert lease_holder(storage) is None


def test_a_held_folder_is_refused_early_and_a_free_one_is_left_alone(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "run")
    refuse_if_held(storage)
    assert not storage.folder.exists()
    with lease(storage):
        with pytest.raises(LeaseError, match=f"process {os.getpid()} on {HOST}"):
            refuse_if_held(storage)
        assert lease_holder(storage) == (HOST, os.getpid())
    sign(storage.folder, STALE["reused"]())
    refuse_if_held(storage)


def _link(path: Path) -> None:
    (path.parent / "target").write_text("precious")
    path.symlink_to("target")


ODD = {
    "link": _link,
    "loop": lambda path: path.symlink_to("lease.json"),
    "dangling": lambda path: path.symlink_to("nowhere"),
    "folder": lambda path: path.mkdir(),
    "pipe": lambda path: os.mkfifo(path),
}


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_plain_file_is_never_followed_nor_overwritten(kind: str, tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    ODD[kind](tmp_path / "lease.json")
    refuse_if_held(storage)
    assert lease_holder(storage) is None
    with pytest.raises(StorageError, match=r"lease\.json: the lease .* is not a plain file"), lease(storage):
        pass
    assert os.path.lexists(tmp_path / "lease.json")
    if kind == "link":
        assert (tmp_path / "target").read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()
