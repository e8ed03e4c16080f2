"""A bucket, reached through pyarrow, as the place of the ledger's bytes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from geco_ray.errors import StorageError, UserError
from geco_ray.ledger.interface import FANS, OF_ONE_FILE, Entry, bytes_or_error

if TYPE_CHECKING:
    from pyarrow import fs

READERS = 32  # requests to a bucket at a time: each takes tens of milliseconds, nearly all of it waiting
_AHEAD = 2_000  # files that are read before they are asked for


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
        with self._explained(path, *OF_ONE_FILE), self._fs.open_input_file(f"{self._base}/{path}") as stream:
            return bytes(stream.readall())

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes | OSError]:
        with ThreadPoolExecutor(READERS) as pool:
            for start in range(0, len(paths), _AHEAD):  # not all at once: a million answers would wait in memory
                yield from pool.map(lambda path: bytes_or_error(self, path), paths[start : start + _AHEAD])

    def names(self, folder: str) -> dict[str, int]:
        return {entry.name: entry.size for entry in self.entries(folder)}

    def entries(self, folder: str, *, deep: bool = False) -> Iterator[Entry]:
        from pyarrow import fs

        with ThreadPoolExecutor(READERS) as pool:
            places = [f"{folder}/{fan}" for fan in FANS] if deep else [folder]
            for found in pool.map(self._listed, places):
                for info in found:
                    if info.type == fs.FileType.File and not info.base_name.startswith("."):
                        yield Entry(info.base_name, info.size, info.mtime_ns)

    def folders(self, folder: str) -> list[str]:
        from pyarrow import fs

        return [info.base_name for info in self._listed(folder) if info.type == fs.FileType.Directory]

    def _listed(self, folder: str) -> list[fs.FileInfo]:
        from pyarrow import fs

        with self._explained(folder):
            found: list[fs.FileInfo] = self._fs.get_file_info(
                fs.FileSelector(f"{self._base}/{folder}", allow_not_found=True)
            )
        return found

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
