"""One driver per run folder: a locked lease file that names host and process.

The lock is what counts on one host: the system gives it back when its process ends, however it ends, so a lease can't
go stale, two takers can't both win, and a process number that is used again means nothing. The file's content is for
people, and for other hosts, where a lock may not be seen.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from geco_ray.errors import LeaseError, StorageError
from geco_ray.ledger.locks import lock_file, process_lives
from geco_ray.ledger.storage import LocalStorage, Storage

# No link is followed (its target may be anything), and a pipe does not make us wait for its other end.
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@contextlib.contextmanager
def lease(storage: Storage) -> Iterator[None]:
    """Hold ``lease.json`` in a local run folder while the block runs; a bucket is not guarded.

    Temporary files that killed processes of this host left in the folder are cleaned up first.

    Raises:
        LeaseError: another living process of this host, or any process of another host, holds it.
        StorageError: the folder can't be written.
    """
    if not isinstance(storage, LocalStorage):
        yield
        return
    path = storage.folder / "lease.json"
    handle = _take(path)
    try:
        storage.sweep()
        yield
    finally:
        if _is_open_at(handle, path):
            path.unlink(missing_ok=True)
        os.close(handle)


def lease_holder(storage: Storage) -> tuple[str, int] | None:
    """Host and process that hold a run folder now; None if nobody does, as far as it can be seen. Takes no lock."""
    if not isinstance(storage, LocalStorage):
        return None
    try:
        handle = os.open(storage.folder / "lease.json", os.O_RDONLY | _PLAIN)
    except OSError:
        return None
    try:
        holder = _holder(handle) if stat.S_ISREG(os.fstat(handle).st_mode) else None
    finally:
        os.close(handle)
    gone = holder is not None and holder[0] == socket.gethostname() and not process_lives(holder[1])
    return None if gone else holder


def give_back(storage: Storage) -> None:
    """Remove the lease of this process, which is about to end without leaving the block of :func:`lease`."""
    if isinstance(storage, LocalStorage) and lease_holder(storage) == (socket.gethostname(), os.getpid()):
        (storage.folder / "lease.json").unlink(missing_ok=True)


def refuse_if_held(storage: Storage) -> None:
    """Refuse a run folder on which another driver works, before anything heavy is loaded. Takes and writes nothing.

    It saves a wait and decides nothing: who runs takes the :func:`lease`.

    Raises:
        LeaseError: another living process of this host, or any process of another host, holds the folder.
    """
    if not isinstance(storage, LocalStorage):
        return
    path = storage.folder / "lease.json"
    try:
        handle = os.open(path, os.O_RDONLY | _PLAIN)
    except OSError:
        return  # nobody holds it, or taking the lease will say what is wrong with it
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            locked = lock_file(handle, wait=False)
            if locked is False:
                _refuse(path, handle)
            _refuse_unlocked(path, handle, locks=locked is not None)
    finally:
        os.close(handle)


def _take(path: Path) -> int:
    """Open and lock the lease; the handle keeps the lock."""
    while True:
        handle = _open(path)
        try:
            locked = lock_file(handle, wait=False)
            if locked is False:
                _refuse(path, handle)
            if _is_open_at(handle, path):  # else its holder removed it between our opening and locking
                _refuse_unlocked(path, handle, locks=locked is not None)
                _sign(path, handle)
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_RDWR | _PLAIN, 0o644)
    except OSError as error:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise _no_plain_file(path) from error
        raise StorageError(
            f"{path.parent}: the run folder cannot be written ({error.strerror}). Give another with --root."
        ) from error
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise _no_plain_file(path)


def _no_plain_file(path: Path) -> StorageError:
    return StorageError(
        f"{path}: the lease of the run folder is not a plain file (a link, a folder or a device). Look at it and "
        "remove it, or give another folder with --root."
    )


def _is_open_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _sign(path: Path, handle: int) -> None:
    mine = json.dumps({"host": socket.gethostname(), "pid": os.getpid()}).encode()
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, mine, 0)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise StorageError(
            f"{path.parent}: the run folder cannot be written ({error.strerror}). Free some space or change --root."
        ) from error


def _holder(handle: int) -> tuple[str, int] | None:
    """Host and process of whoever signed last; None if it can't be read (cut off by a crash, or not yet written)."""
    try:
        value = json.loads(os.pread(handle, 4096, 0))
        host, pid = value["host"], value["pid"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return (host, pid) if type(host) is str and type(pid) is int and pid > 0 else None


def _refuse_unlocked(path: Path, handle: int, *, locks: bool) -> None:
    """No lock was in the way: refuse if the holder may live on another host, or lives here and there are no locks."""
    holder = _holder(handle)
    if holder is not None and (holder[0] != socket.gethostname() or (not locks and process_lives(holder[1]))):
        _refuse(path, handle)


def _refuse(path: Path, handle: int) -> NoReturn:
    host, pid = _holder(handle) or (socket.gethostname(), "of unknown number")
    raise LeaseError(
        f"{path.parent}: process {pid} on {host} works on this run folder. Wait for it, or, if you know that it is "
        f"gone, delete {path}."
    )
