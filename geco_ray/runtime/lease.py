"""One driver per run folder: a lease file that names host and process, taken over when its process is gone."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from geco_ray.errors import LeaseError, StorageError
from geco_ray.storage import LocalStorage, Storage


@contextlib.contextmanager
def lease(storage: Storage) -> Iterator[None]:
    """Hold ``lease.json`` in a local run folder while the block runs; a bucket is not guarded.

    Raises:
        LeaseError: another living process of this host, or any process of another host, holds it.
    """
    if not isinstance(storage, LocalStorage):
        yield
        return
    path = storage.folder / "lease.json"
    _take(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _take(path: Path) -> None:
    mine = json.dumps({"host": socket.gethostname(), "pid": os.getpid()})
    for _ in range(3):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            _refuse_living(path)
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(
                f"{path}: cannot be written ({error.strerror}). Give another folder with --root."
            ) from error
        else:
            with os.fdopen(handle, "w") as stream:
                stream.write(mine)
            return
    raise LeaseError(f"{path}: taken by another process again and again.")


def _refuse_living(path: Path) -> None:
    try:
        holder: dict[str, Any] = json.loads(path.read_text())
        host, pid = str(holder["host"]), int(holder["pid"])
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError):
        return  # a lease cut off while it was written has no living holder
    if host == socket.gethostname() and not _alive(pid):
        return
    raise LeaseError(
        f"{path.parent}: process {pid} on {host} works on this run folder. Wait for it, or, if you know that it is gone, "
        f"delete {path}."
    )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
