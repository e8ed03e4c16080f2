"""What a record says about the run that made it: where, when, with which versions and kernels; no part of an id."""

from __future__ import annotations

import importlib.metadata
import platform
import socket
from datetime import UTC, datetime
from functools import cache
from typing import Any

from geco_ray import __version__
from geco_ray.arithmetic import arithmetic_facts

# Those whose release can move a result's last digits.
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "transformers", "tokenizers", "captum", "lime", "highspy")


def provenance() -> dict[str, Any]:
    """Versions, kernels, host and time of now."""
    return arithmetic_facts() | {
        "geco_ray": __version__,
        "python": platform.python_version(),
        "packages": versions(),
        "machine": platform.machine(),
        "host": socket.gethostname(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def versions() -> dict[str, str]:
    """Installed releases of :data:`PACKAGES`."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
