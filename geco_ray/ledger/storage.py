"""Where the ledger's bytes live: a local folder, or a bucket reached through pyarrow.

Both give the one guarantee that the ledger is built on: a file either is not there or is there whole. Locally that is
a temporary file in the same folder, flushed to disk and renamed; in an object store a single put of the final key.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from geco_ray.errors import StorageError, UserError
from geco_ray.files.atomic import LEFTOVER, write_whole
from geco_ray.files.home import expand_home
from geco_ray.ledger.locks import check_guard, lock_file, process_lives

if TYPE_CHECKING:
    from pyarrow import fs

_READERS = 32  # requests to a bucket at a time: each takes tens of milliseconds, nearly all of it waiting
_OF_ONE_FILE = (FileNotFoundError, PermissionError, IsADirectoryError)
_OF_ONE_ENTRY = {errno.ELOOP, errno.EIO, errno.ENXIO, errno.EINVAL, getattr(errno, "EUCLEAN", errno.EIO)}  # on a disk
_SUFFIXES = (".json", ".parquet", ".safetensors")  # what has such a name stands where a cell's file belongs
NO_FILE = -1  # the size of what is no plain file: a folder, a link in a circle, a pipe, an entry that cannot be read


class Storage(Protocol):
    """Whole-file access under one root; paths are relative, with ``/``. Faults of the disk are StorageErrors."""

    root: str

    def write(self, path: str, data: bytes) -> None:
        """Create or replace one file as a whole."""

    def read(self, path: str) -> bytes:
        """The bytes of one file.

        Raises:
            OSError: the fault is this one entry's: it is not there, or may not or cannot be read, or is no plain file.
            StorageError: the storage's.
        """

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes | OSError]:
        """The bytes of each file, or what :meth:`read` raised for that one file; in order."""

    def names(self, folder: str) -> dict[str, int]:
        """File name to size in bytes for the files of one folder (no sub-folders); empty if it is not there.

        What is no plain file, but has the name of a cell's, has the size ``NO_FILE``.
        """

    def remove(self, path: str) -> None:
        """Delete one file if it is there."""

    def move(self, path: str, target: str) -> None:
        """Rename a file, creating the target's folder; nothing happens if it is not there."""

    def exclusive(self, folder: str) -> contextlib.AbstractContextManager[None]:
        """Keep other processes of this host out of the same block for the same folder."""

    def sweep(self) -> int:
        """Delete temporary files that dead processes of this host left behind; how many there were."""


class LocalStorage:
    """A folder on a local or shared file system."""

    def __init__(self, root: Path) -> None:
        self.folder = expand_home(root, "--root").absolute()
        self.root = str(self.folder)

    def write(self, path: str, data: bytes) -> None:
        target = self.folder / path
        check_guard(self.root)
        with self._explained(target):
            try:
                write_whole(target, data, durable=True)
            except IsADirectoryError:
                self._set_aside(path)
                write_whole(target, data, durable=True)

    def read(self, path: str) -> bytes:
        target = self.folder / path
        try:
            with open(target, "rb", buffering=0, opener=_open_at_once) as stream:
                if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    raise OSError(errno.EINVAL, "not a plain file", str(target))
                return stream.readall()
        except OSError as error:
            if isinstance(error, _OF_ONE_FILE) or error.errno in _OF_ONE_ENTRY:
                raise
            raise self._explain(error, target) from error

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes | OSError]:
        for path in paths:
            yield _bytes_or_error(self, path)

    def names(self, folder: str) -> dict[str, int]:
        found: dict[str, int] = {}
        place = self.folder / folder
        with self._explained(place), contextlib.suppress(FileNotFoundError), os.scandir(place) as entries:
            for entry in entries:
                if not entry.name.startswith(".") and (size := _size(entry)) is not None:
                    found[entry.name] = size
        return found

    def remove(self, path: str) -> None:
        target = self.folder / path
        with self._explained(target):
            if os.path.isdir(target) and not target.is_symlink():  # noqa: PTH112 (pathlib's raises)
                self._set_aside(path)
            target.unlink(missing_ok=True)

    def move(self, path: str, target: str) -> None:
        source, goal = self.folder / path, self.folder / target
        with self._explained(goal), contextlib.suppress(FileNotFoundError):
            if os.path.lexists(source):
                goal.parent.mkdir(parents=True, exist_ok=True)
                if os.path.lexists(goal) and (goal.is_dir() or os.path.isdir(source)):  # noqa: PTH112 (as above)
                    goal = goal.with_name(f"{goal.name}.{time.time_ns()}")
                source.replace(goal)

    def _set_aside(self, path: str) -> None:
        """Make room for a file where somebody has made a folder."""
        self.move(path, f"quarantine/{path.removeprefix('cells/')}")

    @contextlib.contextmanager
    def exclusive(self, folder: str) -> Iterator[None]:
        place = self.folder / folder
        with self._explained(place):
            place.mkdir(parents=True, exist_ok=True)
            handle = os.open(place, os.O_RDONLY)
        try:
            lock_file(handle, wait=True)
            yield
        finally:
            os.close(handle)  # gives the lock back, as does the end of the process

    def sweep(self) -> int:
        swept = 0
        for folder, _, names in os.walk(self.folder):
            for name in names:
                match = LEFTOVER.match(name)
                if match and match["host"] == socket.gethostname() and not process_lives(int(match["pid"])):
                    with contextlib.suppress(OSError):
                        (Path(folder) / name).unlink()
                        swept += 1
        return swept

    @contextlib.contextmanager
    def _explained(self, path: Path, *passed: type[OSError]) -> Iterator[None]:
        try:
            yield
        except passed:
            raise
        except OSError as error:
            raise self._explain(error, path) from error

    def _explain(self, error: OSError, path: Path) -> StorageError:
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            remedy = "Free some space or give another folder with --root, then run the same command again"
        elif error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            remedy = "Make the folder writable or give another one with --root"
        else:
            remedy = "Give another folder with --root"
        return StorageError(f"{path}: cannot be used ({reason}). {remedy}; finished cells are kept.")


class ArrowStorage:
    """A bucket (``s3://``, ``gs://``) through ``pyarrow.fs``; one put of the final key is atomic there."""

    def __init__(self, uri: str) -> None:
        from pyarrow import fs

        self.root = uri.rstrip("/")
        try:
            self._fs, self._base = fs.FileSystem.from_uri(self.root)
            if not self._base.strip("/"):
                raise ValueError("no bucket is named")
        except Exception as error:  # pyarrow raises several unrelated types for a bad URI or missing credentials
            raise UserError(
                f"cannot open the storage {uri!r}: {error}", remedy="Give --root a folder or s3://bucket/path"
            ) from error

    def write(self, path: str, data: bytes) -> None:
        with self._explained(path):
            try:
                self._put(path, data)
            except FileNotFoundError:  # a file system with real folders; object stores have none to make
                self._make_parent(path)
                self._put(path, data)

    def _put(self, path: str, data: bytes) -> None:
        with self._fs.open_output_stream(f"{self._base}/{path}") as stream:
            stream.write(data)

    def _make_parent(self, path: str) -> None:
        self._fs.create_dir(f"{self._base}/{path}".rpartition("/")[0], recursive=True)

    def read(self, path: str) -> bytes:
        with self._explained(path, *_OF_ONE_FILE), self._fs.open_input_file(f"{self._base}/{path}") as stream:
            return bytes(stream.readall())

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes | OSError]:
        with ThreadPoolExecutor(_READERS) as pool:
            yield from pool.map(lambda path: _bytes_or_error(self, path), paths)

    def names(self, folder: str) -> dict[str, int]:
        from pyarrow import fs

        with self._explained(folder):
            found: list[fs.FileInfo] = self._fs.get_file_info(
                fs.FileSelector(f"{self._base}/{folder}", allow_not_found=True)
            )
        files = [info for info in found if info.type == fs.FileType.File and not info.base_name.startswith(".")]
        return {info.base_name: info.size for info in files}

    def remove(self, path: str) -> None:
        from pyarrow import fs

        with self._explained(path):
            if self._fs.get_file_info(f"{self._base}/{path}").type == fs.FileType.File:
                self._fs.delete_file(f"{self._base}/{path}")

    def move(self, path: str, target: str) -> None:
        from pyarrow import fs

        source, goal = f"{self._base}/{path}", f"{self._base}/{target}"
        with self._explained(path):
            if self._fs.get_file_info(source).type != fs.FileType.File:
                return
            try:
                self._fs.move(source, goal)
            except FileNotFoundError:
                self._make_parent(target)
                self._fs.move(source, goal)

    @contextlib.contextmanager
    def exclusive(self, folder: str) -> Iterator[None]:
        yield  # a bucket has no locks

    def sweep(self) -> int:
        return 0  # nor temporary files

    @contextlib.contextmanager
    def _explained(self, path: str, *passed: type[OSError]) -> Iterator[None]:
        try:
            yield
        except passed:
            raise
        except OSError as error:
            raise StorageError(
                f"{self.root}/{path}: cannot be used ({error}). Check the bucket's name, the rights and the network, "
                "then run the same command again; finished cells are kept."
            ) from error


def open_storage(root: str | Path) -> Storage:
    """A local folder, or the bucket that a URI names. Nothing is created before the first write.

    Raises:
        UserError: an empty name, or a URI that pyarrow can't open.
    """
    text = str(root)
    if not text.strip():
        raise UserError("--root is empty", remedy="Give a folder, or s3://bucket/path")
    if "://" in text and not text.startswith("file://"):
        return ArrowStorage(text)
    return LocalStorage(Path(text.removeprefix("file://")))


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe must not make us wait for its other end


def _size(entry: os.DirEntry[str]) -> int | None:
    """Bytes of a file; None for what is none of ours: a sub-folder, or an entry that is gone."""
    try:
        if entry.is_file():
            return entry.stat().st_size
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            return None  # moved or removed since the folder was opened
    return NO_FILE if entry.name.endswith(_SUFFIXES) else None


def _bytes_or_error(storage: Storage, path: str) -> bytes | OSError:
    try:
        return storage.read(path)
    except OSError as error:
        return error
