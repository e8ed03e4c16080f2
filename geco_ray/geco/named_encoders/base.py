"""The registry of encoders: a name, a title, and a function that says where the encoder is.

What identifies an encoder in results is its content (a folder's files) or its commit (a model of the hub), not its
name.
"""

from __future__ import annotations

from collections.abc import Callable

from geco_ray.registry import Registry

Reference = Callable[[], str]
"""Gives the path of a local folder, or ``owner/name@<40 hex digits>`` of the Hugging Face hub."""

ENCODERS: Registry[Reference] = Registry("encoder", "geco_ray.geco.named_encoders")


def registered_reference(name: str) -> str | None:
    """Where the encoder of that name is, by its registration; None where none has the name.

    ``my_encoders.py:mine`` names one in a file or module.

    Raises:
        UserError: a file or module that cannot be loaded, or has no such encoder.
    """
    known = ENCODERS.names()
    if name in known or (":" in name and not name.startswith(("/", ".", "~")) and "@" not in name):
        return ENCODERS.get(name).target()
    return None
