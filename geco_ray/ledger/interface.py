"""What the ledger asks of a place for its bytes, whatever it is: a disk or a bucket."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

OF_ONE_FILE = (FileNotFoundError, PermissionError, IsADirectoryError)
SUFFIXES = (".json", ".parquet", ".safetensors")  # what has such a name stands where a cell's file belongs
NO_FILE = -1  # the size of what is no plain file: a folder, a link in a circle, a pipe, an entry that cannot be read
FANS = tuple(f"{number:02x}" for number in range(256))  # the folders of a stage that is fanned out


class Entry(NamedTuple):
    """A file of a listing: its name, its bytes, and what is another one when it is written again.

    The stamp is the time of the last change in nanoseconds (a number), or the ETag (a text) where a bucket tells it.
    """

    name: str
    size: int
    stamp: int | str | None


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

    def entries(self, folder: str, *, deep: bool = False) -> Iterator[Entry]:
        """Each file of one folder, or with ``deep`` of the folders ``00`` to ``ff`` in it, in no order.

        What is no plain file, but has the name of a cell's, has the size ``NO_FILE`` and no stamp.
        """

    def folders(self, folder: str) -> list[str]:
        """Names of the folders in one folder; none if it is not there."""

    def remove(self, path: str) -> None:
        """Delete one file if it is there."""

    def move(self, path: str, target: str) -> None:
        """Rename a file, creating the target's folder; nothing happens if it is not there."""

    def exclusive(self, folder: str) -> contextlib.AbstractContextManager[None]:
        """Keep other processes of this host out of the same block for the same folder."""

    def sweep(self) -> int:
        """Delete temporary files that dead processes of this host left behind; how many there were."""


def bytes_or_error(storage: Storage, path: str) -> bytes | OSError:
    """What :meth:`Storage.read` gives, or what it raises for this one file."""
    try:
        return storage.read(path)
    except OSError as error:
        return error
