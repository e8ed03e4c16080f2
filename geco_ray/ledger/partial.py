"""What a cell that takes minutes keeps while it is computed: one file, never the truth about anything.

It lies in the run folder (``partial/<id>.safetensors``), where any worker of a shared folder finds it. For a bucket it
lies in this machine's cache instead, unless a run asks for it there: a checkpoint of bert-base has 1.3 GB.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from geco_ray.errors import StorageError
from geco_ray.files.roots import find_cache_dir
from geco_ray.ledger.storage import LocalStorage, Storage

FOLDER = "partial"
Where = Literal["disk", "root", "off"]


class PartialWork:
    """The unfinished work of one cell."""

    def __init__(self, storage: Storage, cell_id: str) -> None:
        self._storage, self._path = storage, f"{FOLDER}/{cell_id}.safetensors"

    def load(self) -> bytes | None:
        """What was kept last; None if there is nothing that can be read."""
        try:
            return self._storage.read(self._path)
        except (OSError, StorageError):
            return None

    def store(self, data: bytes) -> None:
        """Replace it, in one step. A disk that takes no more costs the checkpoint, not the work."""
        with contextlib.suppress(StorageError):
            self._storage.write(self._path, data)

    def remove(self) -> None:
        """Forget it."""
        with contextlib.suppress(StorageError):
            self._storage.remove(self._path)


def partial_storage(storage: Storage, where: Where) -> Storage | None:
    """Where a run keeps unfinished work: its own folder, this machine's cache for a bucket, or nowhere."""
    if where == "off":
        return None
    if where == "root" or isinstance(storage, LocalStorage):
        return storage
    cache = find_cache_dir()
    return LocalStorage(Path(cache)) if cache is not None else None


def kept_work(storage: Storage) -> dict[str, int]:
    """Id of each cell with unfinished work to its bytes."""
    names = storage.names(FOLDER)
    return {name.removesuffix(".safetensors"): size for name, size in names.items() if name.endswith(".safetensors")}


def remove_kept(storage: Storage, finished: Collection[str] | None) -> int:
    """Remove what finished cells kept, or what any cell did; how many there were.

    Args:
        finished: ids of finished cells; None for all cells.
    """
    removed = [name for name in kept_work(storage) if finished is None or name in finished]
    for name in removed:
        PartialWork(storage, name).remove()
    return len(removed)
