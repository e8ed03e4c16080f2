"""Starting Ray quietly and ending all of it: no process, actor or shared-memory file outlives a run."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from geco_ray.device import usable_cpus
from geco_ray.errors import ResourceError
from geco_ray.plan.config import RunSettings
from geco_ray.runtime.connect import connect
from geco_ray.runtime.session_folder import MARK, remove_folder, temporary_folder
from geco_ray.runtime.shares import local_gpus
from geco_ray.runtime.watch import watch_ray

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
            after what is left of a local Ray has been removed; it has to end this process (see ``watch.py``).

    Yields:
        The resources of the whole cluster, such as ``{"CPU": 2.0, "GPU": 1.0}``.

    Raises:
        ResourceError: no cluster answers at the address.
    """
    address = settings.address or os.environ.get("RAY_ADDRESS")
    local = address in (None, "", "local")
    _prepare_environment(local)
    import ray

    logging.getLogger("ray").setLevel(logging.CRITICAL)
    folder = temporary_folder() if local else None
    try:
        _begin(settings, str(address), folder)
        with watch_ray(local, on_death):
            yield {name: float(value) for name, value in ray.cluster_resources().items()}
    finally:
        ray.shutdown()
        if folder is not None:
            remove_folder(folder)


def _begin(settings: RunSettings, address: str, folder: Path | None) -> None:
    """Start a Ray in ``folder`` or connect to that at ``address``; a SIGTERM meanwhile is answered as before."""
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        if folder is not None:
            _silence_raylet()
            with _environment_of(folder):
                _start_or_explain(settings, str(folder))
        else:
            connect(address, settings)
    except SystemExit:  # Ray's own answer to SIGTERM, which stands in for ours while it starts
        if callable(on_sigterm):
            on_sigterm(signal.SIGTERM, None)
        raise
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_sigterm)


def _prepare_environment(local: bool) -> None:
    """What Ray reads when it is imported; for a user without a home folder, whom Ray does not know, a stand-in."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    if os.path.expanduser("~") == "~":  # noqa: PTH111 (pathlib's raises)
        os.environ["HOME"] = tempfile.gettempdir()
    if not local and (Path.home() / ".ray" / "auth_token").is_file():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


@contextlib.contextmanager
def _environment_of(folder: Path) -> Iterator[None]:
    """While a local Ray starts: the mark by which its processes are known, and a token of its own.

    Without a token Ray would write one to ``~/.ray/auth_token``, readable by all, where it makes every later
    connection to a cluster without tokens fail; and there may be no home at all.
    """
    own = {MARK: str(folder)}
    if not any(name.startswith("RAY_AUTH_TOKEN") for name in os.environ):  # a token or the path of one
        own["RAY_AUTH_TOKEN"] = _token()  # with no mode set, Ray takes it for the Ray that it starts
    before = dict(os.environ)
    os.environ.update(own)
    try:
        yield
    finally:
        for name in (*own, "RAY_AUTH_MODE"):
            os.environ.pop(name, None)
            if name in before:  # a run that was started inside a worker of another one bears that one's mark
                os.environ[name] = before[name]


@cache
def _token() -> str:
    """One for the life of this process, since Ray reads a token once."""
    return secrets.token_hex(32)


def _start_or_explain(settings: RunSettings, folder: str) -> None:
    """Start a Ray of our own.

    Raises:
        ResourceError: it did not start; on a machine that is very busy it may do so the next time.
    """
    try:
        _start_local(settings, folder)
    except Exception as error:  # Ray raises plain Exceptions, RuntimeErrors and its own kinds for what is one fault
        reason = str(error).strip().partition("\n")[0].rstrip(".:") or type(error).__name__
        raise ResourceError(
            f"Ray did not start on this machine ({reason}). Finished cells are kept; run the same command again when "
            "the machine is less busy, or add --executor inline."
        ) from error


def _start_local(settings: RunSettings, folder: str) -> None:
    import ray

    options: dict[str, Any] = {"num_cpus": settings.cpus or usable_cpus()}
    options["num_gpus"] = local_gpus(settings.gpus, settings.device)
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
