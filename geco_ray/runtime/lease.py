"""One driver per run folder: a locked lease file that names host and process.

The lock is what counts on one host: the system gives it back when its process ends, however it ends, so a lease can't
go stale, two takers can't both win, and a process number that is used again means nothing. The file's content is for
people, and for other hosts, where a lock may not be seen: for them its holder touches the file every few seconds. A
lease of another host that nobody has touched for ``WAIT_SECONDS`` is taken over, by putting a new file in its place; a
holder that slept meanwhile finds that the file is not its own any more, writes nothing and ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from geco_ray.errors import GecoRayWarning, LeaseError, StorageError
from geco_ray.ledger.locks import guarded_writes, lock_file, process_lives
from geco_ray.ledger.storage import LocalStorage, Storage

# No link is followed (its target may be anything), and a pipe does not make us wait for its other end.
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
BEAT_SECONDS = 2.0  # between two touches of the lease by its holder
WAIT_SECONDS = 60.0  # without a touch, after which the holder of another host is taken for gone
_EARLY_SECONDS = 2 * BEAT_SECONDS  # how long a living holder may take to show itself before anything heavy is loaded


@contextlib.contextmanager
def lease(storage: Storage, on_loss: Callable[[LeaseError], None] | None = None) -> Iterator[None]:
    """Hold ``lease.json`` in a local run folder while the block runs; a bucket is not guarded.

    Temporary files that killed processes of this host left in the folder are cleaned up first. If another driver takes
    the folder over, since this process did not run for a while, its further writes to the ledger raise LeaseError.

    Args:
        storage: of the run folder.
        on_loss: called from another thread with what happened when the folder has been taken over.

    Raises:
        LeaseError: another living process of this host, or of another host, holds it.
        StorageError: the folder can't be written.
    """
    if not isinstance(storage, LocalStorage):
        yield
        return
    path = storage.folder / "lease.json"
    handle = _take(path)
    try:
        with guarded_writes(storage.root, lambda: _require_own(handle, path)), _touched(handle, path, on_loss):
            storage.sweep()
            yield
    except BaseException:
        storage.sweep()  # what workers were writing when they were ended
        raise
    finally:
        if _is_open_at(handle, path):
            path.unlink(missing_ok=True)
        os.close(handle)


@contextlib.contextmanager
def _touched(handle: int, path: Path, on_loss: Callable[[LeaseError], None] | None) -> Iterator[None]:
    """Show other hosts that we live, while the block runs, and look whether the lease is still ours."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(BEAT_SECONDS):
            try:
                _require_own(handle, path)
                os.utime(handle if os.utime in os.supports_fd else path)
            except LeaseError as error:
                if on_loss is not None and not ended.is_set():
                    on_loss(error)
                return
            except OSError:
                continue  # the disk does not answer now, and may do so the next time

    thread = threading.Thread(target=beat, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()  # or it could touch a file that is another one's by then


def _require_own(handle: int, path: Path) -> None:
    if not _is_open_at(handle, path):
        raise LeaseError(
            f"{path.parent}: this run did not go on for {WAIT_SECONDS:.0f} s or more, and another driver has taken the "
            "run folder over (or its lease was deleted). Nothing more is written; finished cells are kept."
        )


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
            _refuse_unlocked(path, handle, locks=locked is not None, patience=_EARLY_SECONDS)
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
                if not _refuse_unlocked(path, handle, locks=locked is not None, patience=WAIT_SECONDS):
                    _sign(path, handle)
                    return handle
                _clear(path, handle)
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


def _refuse_unlocked(path: Path, handle: int, *, locks: bool, patience: float) -> bool:
    """No lock was in the way: refuse if the holder lives here and there are no locks, or shows itself on another host.

    Returns:
        Whether it was one of another host that did not touch the lease for ``patience`` seconds.
    """
    holder = _holder(handle)
    if holder is None:
        return False
    if holder[0] == socket.gethostname():
        if not locks and process_lives(holder[1]):
            _refuse(path, handle)
        return False
    if patience >= WAIT_SECONDS:
        warnings.warn(
            f"{path.parent}: process {holder[1]} on {holder[0]} held this run folder and may be gone; "
            f"waiting {WAIT_SECONDS:.0f} s for a sign of it",
            GecoRayWarning,
            stacklevel=2,
        )
    seen, until = _last_touch(path), time.monotonic() + patience
    while time.monotonic() < until:
        time.sleep(min(BEAT_SECONDS / 4, patience))
        if _last_touch(path) != seen:
            _refuse(path, handle)
    return True


def _last_touch(path: Path) -> tuple[int, int] | None:
    """Which file is the lease and when it was touched; opened again: a network file system may keep old times."""
    try:
        handle = os.open(path, os.O_RDONLY | _PLAIN)
    except OSError:
        return None
    try:
        facts = os.fstat(handle)
        return facts.st_ino, facts.st_mtime_ns
    finally:
        os.close(handle)


def _clear(path: Path, handle: int) -> None:
    """Take away the lease that was found stale, and no other: one that somebody has put there meanwhile is put back."""
    aside = path.with_name(f".lease.{socket.gethostname()}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    with contextlib.suppress(FileNotFoundError):
        path.rename(aside)
        if not _is_open_at(handle, aside):
            with contextlib.suppress(FileExistsError):
                os.link(aside, path)
        aside.unlink()


def _refuse(path: Path, handle: int) -> NoReturn:
    host, pid = _holder(handle) or (socket.gethostname(), "of unknown number")
    raise LeaseError(
        f"{path.parent}: process {pid} on {host} works on this run folder. Wait for it, or, if you know that it is "
        f"gone, delete {path} (that of another host is taken over once it has been silent for {WAIT_SECONDS:.0f} s)."
    )
