"""Where the ledger's bytes live: a local folder, or a bucket reached through pyarrow.

Both give the one guarantee that the ledger is built on: a file either is not there or is there whole. Locally that is
a temporary file in the same folder, flushed to disk and renamed; in an object store a single put of the final key.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from geco_ray.errors import StorageError, UserError

if TYPE_CHECKING:
    from pyarrow import fs


class Storage(Protocol):
    """Whole-file access under one root; paths are relative, with ``/``."""

    root: str

    def write(self, path: str, data: bytes) -> None:
        """Create or replace one file as a whole."""

    def read(self, path: str) -> bytes:
        """The bytes of one file. Raises FileNotFoundError."""

    def names(self, folder: str) -> dict[str, int]:
        """File name to size in bytes for the files of one folder (no sub-folders); empty if it is not there."""

    def remove(self, path: str) -> None:
        """Delete one file if it is there."""

    def move(self, path: str, target: str) -> None:
        """Rename a file, creating the target's folder."""


class LocalStorage:
    """A folder on a local or shared file system."""

    def __init__(self, root: Path) -> None:
        self.folder = root.expanduser().absolute()
        self.root = str(self.folder)

    def write(self, path: str, data: bytes) -> None:
        target = self.folder / path
        temporary = target.parent / f".{target.name}.{socket.gethostname()}.{os.getpid()}.{time.monotonic_ns()}.tmp"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with temporary.open("wb") as stream:
                    stream.write(data)
                    stream.flush()
                    os.fsync(stream.fileno())
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            raise self._explain(error, target) from error

    def read(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    def names(self, folder: str) -> dict[str, int]:
        try:
            with os.scandir(self.folder / folder) as entries:
                return {
                    entry.name: entry.stat().st_size
                    for entry in entries
                    if entry.is_file() and not entry.name.startswith(".")
                }
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._explain(error, self.folder / folder) from error

    def remove(self, path: str) -> None:
        (self.folder / path).unlink(missing_ok=True)

    def move(self, path: str, target: str) -> None:
        goal = self.folder / target
        goal.parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).replace(goal)

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
        except Exception as error:  # pyarrow raises several unrelated types for a bad URI or missing credentials
            raise UserError(
                f"cannot open the storage {uri!r}: {error}", remedy="Give --root a folder or s3://bucket/path"
            ) from error

    def _info(self, folder: str) -> list[fs.FileInfo]:
        from pyarrow import fs

        selector = fs.FileSelector(f"{self._base}/{folder}", allow_not_found=True)
        return [info for info in self._fs.get_file_info(selector) if info.type == fs.FileType.File]

    def write(self, path: str, data: bytes) -> None:
        try:
            with self._fs.open_output_stream(f"{self._base}/{path}") as stream:
                stream.write(data)
        except OSError as error:
            raise StorageError(f"{self.root}/{path}: cannot be written ({error}).") from error

    def read(self, path: str) -> bytes:
        with self._fs.open_input_file(f"{self._base}/{path}") as stream:
            return bytes(stream.readall())

    def names(self, folder: str) -> dict[str, int]:
        return {info.base_name: info.size for info in self._info(folder) if not info.base_name.startswith(".")}

    def remove(self, path: str) -> None:
        from pyarrow import fs

        if self._fs.get_file_info(f"{self._base}/{path}").type == fs.FileType.File:
            self._fs.delete_file(f"{self._base}/{path}")

    def move(self, path: str, target: str) -> None:
        self._fs.move(f"{self._base}/{path}", f"{self._base}/{target}")


def open_storage(root: str | Path) -> Storage:
    """A local folder, or the bucket that a URI names. Nothing is created before the first write."""
    text = str(root)
    if "://" in text and not text.startswith("file://"):
        return ArrowStorage(text)
    return LocalStorage(Path(text.removeprefix("file://")))
