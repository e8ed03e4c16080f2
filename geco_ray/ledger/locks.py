"""Locks that end with their process, whether a process lives, and a guard of what this process writes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
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


_guards: dict[str, Callable[[], None]] = {}


@contextlib.contextmanager
def guarded_writes(root: str, check: Callable[[], None]) -> Iterator[None]:
    """While the block runs, call ``check`` before this process writes a file below ``root``; it raises to forbid it."""
    _guards[root] = check
    try:
        yield
    finally:
        _guards.pop(root, None)


def check_guard(root: str) -> None:
    """Ask the guard of ``root``, if there is one in this process, before a write."""
    if (check := _guards.get(root)) is not None:
        check()
