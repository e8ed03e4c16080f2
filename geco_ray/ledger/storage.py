"""Where the ledger's bytes live: a local folder, or a bucket.

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
from pathlib import Path

from geco_ray.errors import StorageError, UserError
from geco_ray.files.atomic import LEFTOVER, write_whole
from geco_ray.files.home import expand_home
from geco_ray.ledger.bucket import ArrowStorage
from geco_ray.ledger.interface import FANS, NO_FILE, OF_ONE_FILE, SUFFIXES, Entry, Storage, bytes_or_error
from geco_ray.ledger.locks import check_guard, lock_file, process_lives

__all__ = ["ArrowStorage", "LocalStorage", "Storage", "open_storage"]

_OF_ONE_ENTRY = {errno.ELOOP, errno.EIO, errno.ENXIO, errno.EINVAL, getattr(errno, "EUCLEAN", errno.EIO)}  # on a disk


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
            if isinstance(error, OF_ONE_FILE) or error.errno in _OF_ONE_ENTRY:
                raise
            raise self._explain(error, target) from error

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes | OSError]:
        for path in paths:
            yield bytes_or_error(self, path)

    def names(self, folder: str) -> dict[str, int]:
        return {entry.name: entry.size for entry in self.entries(folder)}

    def entries(self, folder: str, *, deep: bool = False) -> Iterator[Entry]:
        for place in [self.folder / folder / fan for fan in FANS] if deep else [self.folder / folder]:
            with self._explained(place), contextlib.suppress(FileNotFoundError), os.scandir(place) as found:
                for item in found:
                    if not item.name.startswith(".") and (entry := _entry(item)) is not None:
                        yield entry

    def folders(self, folder: str) -> list[str]:
        place = self.folder / folder
        with self._explained(place), contextlib.suppress(FileNotFoundError), os.scandir(place) as found:
            return [item.name for item in found if _is_folder(item)]
        return []

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


def _is_folder(item: os.DirEntry[str]) -> bool:
    try:
        return item.is_dir()
    except OSError:  # a link in a circle
        return False


def _entry(item: os.DirEntry[str]) -> Entry | None:
    """A file of a folder; None for what is none of ours: a sub-folder, or an entry that is gone."""
    try:
        if item.is_file():
            facts = item.stat()
            return Entry(item.name, facts.st_size, facts.st_mtime_ns)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            return None  # moved or removed since the folder was opened
    return Entry(item.name, NO_FILE, None) if item.name.endswith(SUFFIXES) else None
