"""Writing a report's files: each whole or not at all, none touched whose content is already there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from geco_ray.errors import StorageError
from geco_ray.files.atomic import write_whole


def publish(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write ``files`` (name to content) into ``folder`` and return their paths, sorted.

    Raises:
        StorageError: the folder cannot be written; files that were there stay as they were.
    """
    try:
        for name, content in files.items():
            if not _holds(folder / name, content):
                write_whole(folder / name, content)
    except OSError as error:
        raise StorageError(f"{error.filename or folder}: the report cannot be written ({error.strerror}).") from error
    return sorted(folder / name for name in files)


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:  # it is not there, or no plain file: writing it will tell
        return False
