"""Noticing that Ray itself has died, before Ray ends this process without a word.

A driver whose raylet or global control service is gone is ended by Ray with ``_exit`` some 8 to 15 seconds later: no
message, no exit code of ours, lease and temporary folder left. The main thread waits in Ray's compiled parts and cannot
be reached, so a thread of our own looks and has the last word.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

from geco_ray.runtime.session_folder import remove_folders

_LOCAL_SECONDS = 0.5  # between two looks at the processes of a Ray of our own
_REMOTE_SECONDS = 2.0  # between two connections to the head of a cluster
_REMOTE_PATIENCE = 6.0  # how long the head may not answer; Ray itself ends us after 8 s or more


@contextlib.contextmanager
def watch_ray(local: bool, on_death: Callable[[str], None] | None) -> Iterator[None]:
    """While the block runs, call ``on_death`` with a sentence, from another thread, once Ray itself is gone.

    The temporary folders of this process, and the processes of a local Ray, are removed first.

    Args:
        local: whether Ray was started by this process; else its head is asked over the network.
        on_death: has to end this process, since Ray would do so a little later; None watches nothing.
    """
    if on_death is None:
        yield
        return
    ended = threading.Event()
    look = _processes_gone() if local else _head_gone()
    wait = _LOCAL_SECONDS if local else _REMOTE_SECONDS

    def watch() -> None:
        while not ended.wait(wait):
            if (what := look()) and not ended.is_set():
                remove_folders()
                on_death(what)
                return

    thread = threading.Thread(target=watch, name="watch-ray", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()  # before Ray is shut down, or its orderly end would look like its death


def _processes_gone() -> Callable[[], str | None]:
    """A look at the raylet and the control service that ``ray.init`` has started as children of this process."""
    import ray._private.worker as worker

    node = worker._global_node
    started = {
        kind: process.process
        for kind in ("raylet", "gcs_server")
        for process in (node.all_processes.get(kind, []) if node else [])
    }

    def look() -> str | None:
        for kind, process in started.items():
            if process.poll() is not None:
                return f"{kind} ended with code {process.returncode}"
        return None

    return look


def _head_gone() -> Callable[[], str | None]:
    """A look at whether the head's control service, and the raylet that we are connected to, take connections."""
    import ray
    import ray._private.worker as worker

    node = worker._global_node
    looked_at = {f"the head at {(head := ray.get_runtime_context().gcs_address)}": head}
    if node is not None and node.node_manager_port:
        looked_at["this machine's raylet"] = f"{node.node_ip_address}:{node.node_manager_port}"
    answered = dict.fromkeys(looked_at, time.monotonic())

    def look() -> str | None:
        for name, address in looked_at.items():
            host, _, port = address.rpartition(":")
            with contextlib.suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), timeout=2):
                answered[name] = time.monotonic()
            silent = time.monotonic() - answered[name]
            if silent > _REMOTE_PATIENCE:
                return f"{name} has not answered for {silent:.0f} s"
        return None

    return look
