"""Connecting to a Ray cluster that is already there, or giving up in seconds."""

from __future__ import annotations

import logging
import socket
import threading

from geco_ray.arithmetic import pinned_variables
from geco_ray.errors import ResourceError
from geco_ray.plan.config import RunSettings

_CONNECT_SECONDS = 20
_PROBE_SECONDS = 5


def connect(address: str, settings: RunSettings) -> None:
    """Connect with a limit on the wait, which ``ray.init`` itself does not have.

    Workers of a cluster don't inherit our environment, so they are given what pins their kernels.

    Args:
        address: ``auto`` or HOST:PORT, of the settings or of the variable RAY_ADDRESS.
        settings: the run's; whether its arithmetic is pinned.

    Raises:
        ResourceError: no cluster answers there.
    """
    import ray

    variables = pinned_variables() if settings.arithmetic == "pinned" else {}
    environment = {"env_vars": variables} if variables else None
    failure: list[BaseException] = []

    def begin() -> None:
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL, runtime_env=environment)
        except BaseException as error:
            failure.append(error)

    reason = _unreachable(address)
    if reason is None:
        thread = threading.Thread(target=begin, daemon=True)
        thread.start()
        thread.join(_CONNECT_SECONDS)
        if thread.is_alive() or failure:
            reason = f"{failure[0]}" if failure else f"no answer within {_CONNECT_SECONDS} s"
    if reason is not None:
        given_by = "--address" if settings.address else "RAY_ADDRESS"
        remedy = "Check --address" if settings.address else "Unset the variable RAY_ADDRESS, or correct it"
        raise ResourceError(
            f"cannot connect to the Ray cluster at {address!r}, given by {given_by} ({reason}). {remedy}, and see "
            "that this machine holds the cluster's ~/.ray/auth_token."
        )


def _unreachable(address: str) -> str | None:
    """Why nothing can be listening at HOST:PORT, or None; Ray itself would wait for a minute."""
    host, separator, port = address.rpartition("://")[2].rpartition(":")
    if not separator:  # such as "auto"
        return None
    if not (port.isascii() and port.isdigit()):
        return "an address is HOST:PORT"
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        return f"{getattr(error, 'strerror', None) or error}".lower()
    return None
