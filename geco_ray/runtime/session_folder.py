"""The temporary folder of a local Ray: made, found again when its driver was killed, and removed with its processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from geco_ray.errors import ResourceError
from geco_ray.ledger.locks import lock_file

_MARKER = "geco_ray.lock"
_LONGEST_SOCKET = 103 if sys.platform == "darwin" else 107  # bytes of its path
MARK = "GECO_RAY_SESSION"  # in the environment of every process of a local Ray: the folder that it was started with
_held: dict[Path, int] = {}  # folders of this process and the handles that lock their markers


def temporary_folder() -> Path:
    """A folder of this process, after those of runs that were killed have been removed.

    A folder of ours holds a marker that its process keeps locked; one whose lock is free has lost its process. Ray puts
    sockets below the folder, and the path of a socket has at most 107 bytes.

    Raises:
        ResourceError: no folder can be made.
    """
    prefix = f"geco-ray-{os.getuid() if hasattr(os, 'getuid') else 0}-"
    chosen = Path(tempfile.gettempdir())
    base = chosen if _socket_length(chosen / f"{prefix}12345678") <= _LONGEST_SOCKET else Path("/tmp")
    for left in base.glob(f"{prefix}*"):
        if _is_left_behind(left / _MARKER):
            remove_folder(left)
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    except OSError as error:
        long = f"{chosen} is too long for Ray's sockets, and " if base != chosen else ""
        raise ResourceError(
            f"there is no temporary folder for Ray: {long}{base} cannot be written ({error.strerror}). "
            "Set TMPDIR to a short path of a folder of yours."
        ) from None
    handle = os.open(folder / _MARKER, os.O_CREAT | os.O_RDWR, 0o600)
    lock_file(handle, wait=False)
    _held[folder] = handle
    return folder


def _socket_length(folder: Path) -> int:
    """Bytes of the longest path of a socket that Ray makes below ``folder``."""
    session = f"session_2000-01-01_00-00-00_123456_{os.getpid()}"
    return len(os.fsencode(folder / session / "sockets" / "plasma_store"))


def _is_left_behind(marker: Path) -> bool:
    try:
        handle = os.open(marker, os.O_RDWR)
    except OSError:
        return False  # not one of ours, or not there yet
    try:
        return lock_file(handle, wait=False) is True
    finally:
        os.close(handle)


def remove_folder(folder: Path) -> None:
    """End what still runs of the Ray that was started with ``folder``, and delete the folder.

    When a driver is killed, or stopped while Ray starts, two of Ray's helpers can outlive it by minutes. A process that
    only has a file of the folder open, such as somebody's ``tail -f``, is none of ours and lives on.
    """
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # another user's, or it has just ended
            if int(process.name) != os.getpid() and _is_of(process, folder):
                os.kill(int(process.name), signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    if (handle := _held.pop(folder, None)) is not None:
        os.close(handle)


def _is_of(process: Path, folder: Path) -> bool:
    """Whether a process belongs to the Ray of ``folder``: it bears the mark, or has Ray's title and a log there.

    The title that Ray's own Python processes give themselves may be written over a part of their environment.
    """
    if f"{MARK}={folder}\0".encode() in (process / "environ").read_bytes():
        return True
    if not (process / "cmdline").read_bytes().startswith(b"ray::"):
        return False
    return any(str(link.readlink()).startswith(f"{folder}/") for link in (process / "fd").iterdir())


def remove_folders() -> None:
    """Remove every folder of this process that is still there, when it is about to end without its usual way out."""
    for folder in list(_held):
        remove_folder(folder)
