"""Paths that begin with ``~``, for users who have a home folder and for those who have none."""

from __future__ import annotations

from pathlib import Path

from geco_ray.errors import UserError


def expand_home(text: str | Path, where: str) -> Path:
    """The path with its ``~`` or ``~user`` replaced; ``where`` names the option or variable that holds it.

    Raises:
        UserError: that home folder is not known.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError:
        remedy = "Write the whole path instead of ~."
        raise UserError("the home folder is not known", where=where, found=str(text), remedy=remedy) from None
