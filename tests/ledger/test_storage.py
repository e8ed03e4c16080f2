"""Both kinds of storage give whole files, and say in words what the disk or bucket refuses."""

from __future__ import annotations

import errno
import multiprocessing
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from geco_ray.errors import StorageError, UserError
from geco_ray.ledger.locks import lock_file, process_lives
from geco_ray.ledger.storage import ArrowStorage, LocalStorage, Storage, open_storage


@pytest.fixture(params=["local", "arrow-mock", "arrow-folders"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """A local folder; an in-memory file system; a real one behind a bucket's address."""
    if request.param == "local":
        return open_storage(tmp_path / "run")
    if request.param == "arrow-mock":
        return open_storage("mock:///bucket/run")
    from pyarrow import fs

    local = fs.LocalFileSystem()

    class Bucket:
        @staticmethod
        def from_uri(uri: str) -> tuple[Any, str]:
            return local, str(tmp_path / "bucket")

    monkeypatch.setattr("pyarrow.fs.FileSystem", Bucket)
    return open_storage("s3://bucket/run")


def test_nothing_is_there_at_first_and_looking_creates_nothing(storage: Storage, tmp_path: Path) -> None:
    assert storage.names("cells/train") == {}
    with pytest.raises(FileNotFoundError):
        storage.read("cells/train/a.json")
    storage.remove("cells/train/a.json")
    storage.move("cells/train/a.json", "quarantine/train/a.json")
    assert storage.sweep() == 0
    assert storage.names("cells/train") == {}
    assert list(tmp_path.iterdir()) == []


def test_write_read_replace_list_move_remove(storage: Storage) -> None:
    storage.write("cells/train/a.json", b"one")
    storage.write("cells/train/a.json", b"two!")
    storage.write("cells/train/b.parquet", b"")
    storage.write("cells/train/deeper/c.json", b"x")
    assert storage.names("cells/train") == {"a.json": 4, "b.parquet": 0}
    assert storage.read("cells/train/a.json") == b"two!"
    storage.move("cells/train/a.json", "quarantine/train/a.json")
    assert storage.read("quarantine/train/a.json") == b"two!"
    assert storage.names("cells/train") == {"b.parquet": 0}
    storage.remove("cells/train/b.parquet")
    assert storage.names("cells/train") == {}


def test_many_files_are_read_in_order_and_a_missing_one_is_told(storage: Storage) -> None:
    paths = [f"cells/train/{number}.json" for number in range(50)]
    for path in paths[:-1]:
        storage.write(path, path.encode())
    answers = list(storage.read_many(paths))
    assert answers[:-1] == [path.encode() for path in paths[:-1]]
    assert isinstance(answers[-1], FileNotFoundError)


def test_what_goes_in_comes_out(storage: Storage) -> None:
    data = os.urandom(3 * 2**20)
    storage.write("cells/x/blob.safetensors", data)
    assert storage.read("cells/x/blob.safetensors") == data


# --- roots ---


@pytest.mark.parametrize("name", ["a b", "ünï—code", "new\nline", "quote'\"", "-n", "a%20b", "#x?y", "x" * 200])
def test_odd_names_of_folders(name: str, tmp_path: Path) -> None:
    storage = open_storage(tmp_path / name)
    storage.write("cells/train/a.json", b"x")
    assert (tmp_path / name / "cells" / "train" / "a.json").read_bytes() == b"x"
    assert storage.names("cells/train") == {"a.json": 1}


def test_a_relative_root_stays_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    storage = open_storage("runs")
    monkeypatch.chdir(tmp_path / "there")
    storage.write("a", b"x")
    assert (tmp_path / "runs" / "a").is_file()
    assert Path(storage.root).is_absolute()


def test_home_and_file_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_storage("~/runs").root == str(tmp_path / "runs")
    assert open_storage(f"file://{tmp_path}/runs").root == str(tmp_path / "runs")


@pytest.mark.parametrize("root", ["", "  ", "nosuch://x/y", "s3://", "gs:///"])
def test_a_root_that_cannot_be_is_refused(root: str) -> None:
    with pytest.raises(UserError) as caught:
        open_storage(root)
    assert caught.value.remedy


def test_a_file_in_the_place_of_the_root_is_told(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    storage = open_storage(tmp_path / "run")
    for attempt in (lambda: storage.names("cells"), lambda: storage.write("cells/a", b""), lambda: storage.read("a")):
        with pytest.raises(StorageError, match=f"{tmp_path}/run.*--root"):
            attempt()
    assert (tmp_path / "run").read_text() == "a file"


# --- faults of the disk ---

ERRORS = [
    (errno.ENOSPC, "Free some space"),
    (errno.EDQUOT, "Free some space"),
    (errno.EROFS, "Make the folder writable"),
    (errno.EACCES, "Make the folder writable"),
    (errno.EPERM, "Make the folder writable"),
    (errno.EIO, "another folder"),
    (errno.ENAMETOOLONG, "another folder"),
    (errno.EMFILE, "another folder"),
    (errno.ESTALE, "another folder"),
]
STEPS = ["pathlib.Path.mkdir", "pathlib.Path.open", "os.fsync", "pathlib.Path.replace"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("number", "remedy"), ERRORS, ids=[errno.errorcode[number] for number, _ in ERRORS])
def test_a_fault_in_any_step_of_a_write_leaves_the_old_file_and_no_other(
    step: str, number: int, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(tmp_path)
    storage.write("cells/a.json", b"old")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(step, fail)
        with pytest.raises(StorageError, match=remedy) as caught:
            storage.write("cells/a.json", b"new")
    assert f"{tmp_path}/cells/a.json" in str(caught.value)
    assert os.strerror(number) in str(caught.value)
    assert [path.name for path in (tmp_path / "cells").iterdir()] == ["a.json"]
    assert storage.read("cells/a.json") == b"old"


def test_ctrl_c_within_a_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        open_storage(tmp_path).write("cells/a.json", b"new")
    assert list((tmp_path / "cells").iterdir()) == []


def test_a_name_that_is_too_long_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="too long"):
        open_storage(tmp_path / ("x" * 300)).write("a", b"")


def test_faults_of_move_and_remove_are_told(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    storage.write("quarantine", b"a file where a folder must be")
    storage.write("cells/a", b"x")
    with pytest.raises(StorageError):
        storage.move("cells/a", "quarantine/a")
    with pytest.raises(StorageError):
        storage.remove("cells")
    assert storage.read("cells/a") == b"x"


def test_a_bucket_that_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage("mock:///bucket/run")
    assert isinstance(storage, ArrowStorage)

    class Broken:
        def __getattr__(self, name: str) -> Any:
            def fail(*_: Any, **__: Any) -> None:
                raise OSError("AWS Error ACCESS_DENIED")

            return fail

    storage._fs = Broken()
    for attempt in (
        lambda: storage.write("a", b""),
        lambda: storage.read("a"),
        lambda: storage.names("a"),
        lambda: storage.remove("a"),
        lambda: storage.move("a", "b"),
        lambda: list(storage.read_many(["a"])),
    ):
        with pytest.raises(StorageError, match=r"mock:///bucket/run/a.*ACCESS_DENIED.*rights"):
            attempt()


def test_a_file_that_goes_while_the_folder_is_read_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(tmp_path)
    for name in "abc":
        storage.write(f"cells/{name}", b"x")
    real = os.scandir

    class Entry:
        def __init__(self, entry: os.DirEntry[str]) -> None:
            self.name, self._entry = entry.name, entry

        def is_file(self) -> bool:
            return True

        def stat(self) -> os.stat_result:
            if self.name == "b":
                raise FileNotFoundError
            return self._entry.stat()

    class Scan:
        def __init__(self, path: Any) -> None:
            self._scan = real(path)

        def __enter__(self) -> list[Entry]:
            return [Entry(entry) for entry in self._scan]

        def __exit__(self, *_: object) -> None:
            self._scan.close()

    monkeypatch.setattr("os.scandir", Scan)
    assert storage.names("cells") == {"a": 1, "c": 1}


# --- leftovers and locks ---


def dead_pid() -> int:
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_only_leftovers_of_dead_processes_of_this_host_are_swept(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    storage.write("cells/train/a.json", b"x")
    folder, host = tmp_path / "cells" / "train", socket.gethostname()
    kept = [
        f".a.json.{host}.{os.getpid()}.5.tmp", ".a.json.elsewhere.1.5.tmp", "notes.tmp", ".hidden", "a.json.tmp",
    ]  # fmt: skip
    gone = [f".a.json.{host}.{dead_pid()}.{number}.tmp" for number in range(3)]
    for name in kept + gone:
        (folder / name).write_bytes(b"half")
    assert storage.names("cells/train").keys() == {"a.json", "notes.tmp", "a.json.tmp"}
    assert storage.sweep() == 3
    assert {path.name for path in folder.iterdir()} == {"a.json", *kept}


def test_a_process_is_alive_or_not() -> None:
    assert process_lives(os.getpid())
    assert process_lives(1)
    assert not process_lives(dead_pid())
    assert not process_lives(2**40)


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen(["true"])
    for _ in range(200):
        if not process_lives(child.pid):
            break
        time.sleep(0.01)
    assert not process_lives(child.pid)
    child.wait()


def test_where_there_are_no_locks_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        assert lock_file(handle, wait=False) is True
        monkeypatch.setattr("fcntl.flock", fail)
        assert lock_file(handle, wait=True) is None
        with LocalStorage(tmp_path).exclusive("cells"):
            pass
    finally:
        os.close(handle)


def _add_one(root: str, times: int) -> None:
    storage = open_storage(root)
    for _ in range(times):
        with storage.exclusive("cells"):
            storage.write("cells/n", str(int(storage.read("cells/n")) + 1).encode())


def test_exclusive_keeps_processes_apart(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    storage.write("cells/n", b"0")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_add_one, args=(str(tmp_path), 20)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert storage.read("cells/n") == b"80"
