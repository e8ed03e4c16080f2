"""Writing files whole: whoever looks sees the old content or the new one, never half of it."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import time
from pathlib import Path
from typing import IO

LEFTOVER = re.compile(r"^\..+\.(?P<host>[^/]+)\.(?P<pid>\d+)\.\d+\.tmp$")
"""The name of a temporary file of :func:`write_whole`: its target, the host and the process that wrote it."""


def write_whole(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Create or replace ``path`` by ``data`` in one step, through a temporary file in the same folder, which is made.

    Args:
        path: the file.
        data: its content.
        durable: force the content to disk before it gets its name, so that not even a power cut leaves half of it.

    Raises:
        OSError: of the disk. Then, and when the process is interrupted, ``path`` is as it was.
    """
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            if durable:
                force_to_disk(stream)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def force_to_disk(stream: IO[bytes]) -> None:
    """Return when what was written to ``stream`` is on the disk."""
    stream.flush()
    os.fsync(stream.fileno())


def force_names_to_disk(folder: Path) -> None:
    """Return when the names of a folder's files are on the disk, so that a renaming survives a power cut."""
    if sys.platform == "win32":  # it has no handle of a folder to wait for
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
