"""Starting Ray quietly and ending all of it: no process, actor or shared-memory file outlives a run."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from geco_ray.errors import ResourceError
from geco_ray.ledger.storage import lock_file
from geco_ray.plan.config import RunSettings
from geco_ray.runtime.watch import watch_ray

_CONNECT_SECONDS = 60
_MARKER = "geco_ray.lock"
_MARK = "GECO_RAY_SESSION"  # in the environment of every process of a local Ray: the folder that it was started with
_held: dict[Path, int] = {}  # folders of this process and the handles that lock their markers
_QUIET = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # five files per trial and half of the driver's time, for logs we keep
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Tune would swallow Ctrl-C and report success
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_METRICS_COLLECTION": "0",
    "RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS": "0",
    "TOKENIZERS_PARALLELISM": "false",
}


@contextlib.contextmanager
def ray_session(settings: RunSettings, on_death: Callable[[str], None] | None = None) -> Iterator[dict[str, float]]:
    """A Ray that belongs to this run (or a connection to the cluster at ``settings.address``).

    Args:
        settings: address, CPUs and GPUs. on_death: called from another thread with the reason when Ray itself dies,
            after what is left of a local Ray has been removed; it has to end this process (see :mod:`.watch`).

    Yields:
        The resources of the whole cluster, such as ``{"CPU": 2.0, "GPU": 1.0}``.

    Raises:
        ResourceError: no cluster answers at the address.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    address = settings.address or os.environ.get("RAY_ADDRESS")
    local = address in (None, "", "local")
    if not local and (Path.home() / ".ray" / "auth_token").is_file():
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    import ray

    logging.getLogger("ray").setLevel(logging.CRITICAL)
    folder = temporary_folder() if local else None
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        try:
            if local:
                _silence_raylet()
                with _environment_of(folder):
                    _start_local(settings, str(folder))
            else:
                _connect(str(address))
        except SystemExit:  # Ray's own answer to SIGTERM, which stands in for ours while it starts
            if callable(on_sigterm):
                on_sigterm(signal.SIGTERM, None)
            raise
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_sigterm)

        def died(reason: str) -> None:
            if folder is not None:
                remove_folder(folder)
            if on_death is not None:
                on_death(reason)

        with watch_ray(local, died if on_death else None):
            yield {name: float(value) for name, value in ray.cluster_resources().items()}
    finally:
        ray.shutdown()
        if folder is not None:
            remove_folder(folder)


@contextlib.contextmanager
def _environment_of(folder: Path | None) -> Iterator[None]:
    """While a local Ray starts: the mark by which its processes are known, and a token of its own.

    Without a token Ray would write one to ``~/.ray/auth_token``, readable by all, where it makes every later
    connection to a cluster without tokens fail; and there may be no home at all.
    """
    own = {_MARK: str(folder)}
    if not any(name.startswith("RAY_AUTH_") for name in os.environ):
        own["RAY_AUTH_TOKEN"] = _token()  # with no mode set, Ray takes it for the Ray that it starts
    before = dict(os.environ)
    os.environ.update(own)
    try:
        yield
    finally:
        for name in {*own, "RAY_AUTH_MODE"} - set(before):
            os.environ.pop(name, None)


@cache
def _token() -> str:
    """One for the life of this process, since Ray reads a token once."""
    return secrets.token_hex(32)


def temporary_folder() -> Path:
    """A folder of this process, after those of runs that were killed have been removed.

    A folder of ours holds a marker that its process keeps locked; one whose lock is free has lost its process. Ray puts
    sockets below the folder, and the path of a socket has at most 107 bytes.
    """
    base = Path(tempfile.gettempdir())
    base = base if len(str(base)) < 30 else Path("/tmp")
    prefix = f"geco-ray-{os.getuid() if hasattr(os, 'getuid') else 0}-"
    for left in base.glob(f"{prefix}*"):
        if _is_left_behind(left / _MARKER):
            remove_folder(left)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    handle = os.open(folder / _MARKER, os.O_CREAT | os.O_RDWR, 0o600)
    lock_file(handle, wait=False)
    _held[folder] = handle
    return folder


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
    mark = f"{_MARK}={folder}\0".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # another user's, or it has just ended
            if int(process.name) != os.getpid() and mark in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    if (handle := _held.pop(folder, None)) is not None:
        os.close(handle)


def _start_local(settings: RunSettings, folder: str) -> None:
    import ray

    options: dict[str, Any] = {"num_cpus": settings.cpus or os.cpu_count() or 1}
    if settings.gpus is not None:
        options["num_gpus"] = settings.gpus
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.CRITICAL,
        object_store_memory=256 * 1024**2,  # cells travel by id, results go to the ledger: little passes through it
        _temp_dir=folder,
        **options,
    )


def _silence_raylet() -> None:
    """Keep Ray from printing a screen to stdout for each worker that dies: we report what it meant for a cell.

    ``log_to_driver=False`` does not reach these messages. On a cluster they may tell why no node comes, and stay.
    """
    import ray._private.worker as worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *data, **options: None


def _connect(address: str) -> None:
    """Connect with a limit on the wait, which ``ray.init`` itself does not have."""
    import ray

    failure: list[BaseException] = []

    def connect() -> None:
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(_CONNECT_SECONDS)
    if thread.is_alive() or failure:
        reason = f"{failure[0]}" if failure else f"no answer within {_CONNECT_SECONDS} s"
        raise ResourceError(
            f"cannot connect to the Ray cluster at {address!r} ({reason}). Check --address, and that this "
            "machine holds the cluster's ~/.ray/auth_token."
        )
