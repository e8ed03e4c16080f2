"""Locks that end with their process, and whether a process lives."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def lock_file(handle: int, *, wait: bool) -> bool | None:
    """Lock an open file or folder for this process; False if another holds it and we don't ``wait``.

    The lock ends with the process, however it dies. None where there are no locks (some network file systems, Windows).
    """
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def process_lives(pid: int) -> bool:
    """Whether a process of this number runs on this host (a zombie doesn't)."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True
