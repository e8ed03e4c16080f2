"""Where data are looked for: the user's folder, or ``$GECO_RAY_DATA`` and the cache of downloads.

Variables may come from a file that no shell has read, so a ``~`` in them is expanded here.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from geco_ray.errors import GecoRayWarning, UserError

DATA_ENV = "GECO_RAY_DATA"
CACHE_ENV = "GECO_RAY_CACHE"


def data_roots(data_dir: Path | None) -> list[Path]:
    """Folders that are searched: only ``data_dir`` when one is given, else ``$GECO_RAY_DATA`` and the cache.

    Warns:
        GecoRayWarning: ``$GECO_RAY_DATA`` names no folder; it is then searched in vain.
    """
    if data_dir is not None:
        return [_expanded(str(data_dir), "--data-dir")]
    named, cache = _data_folder(), find_cache_dir()
    return [folder for folder in (named, cache) if folder is not None]


def _data_folder() -> Path | None:
    text = os.environ.get(DATA_ENV)
    if not text:
        return None
    folder = _expanded(text, DATA_ENV)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        warnings.warn(
            f"{DATA_ENV}: the folder of data {what} ({folder}). Correct or unset the variable.",
            GecoRayWarning,
            stacklevel=1,  # one place, so that it is printed once
        )
    return folder


def cache_dir() -> Path:
    """Where downloads are kept: ``$GECO_RAY_CACHE``, else the user cache of the platform plus ``geco_ray``.

    Raises:
        UserError: this user has no home folder, and no variable names another.
    """
    found = find_cache_dir()
    if found is None:
        raise UserError(
            "there is no folder for downloads, since this user has no home folder",
            remedy=f"Name one in {CACHE_ENV}, or the folder that has the data with --data-dir",
        )
    return found


def find_cache_dir() -> Path | None:
    """As :func:`cache_dir`, but None for a user without a home folder, who has nothing in a cache."""
    chosen = os.environ.get(CACHE_ENV)
    if chosen:
        return _expanded(chosen, CACHE_ENV)
    variable = {"win32": "LOCALAPPDATA", "darwin": ""}.get(sys.platform, "XDG_CACHE_HOME")
    base = os.environ.get(variable) if variable else None
    if base:
        folder = _expanded(base, variable)
    else:
        below = {"win32": Path("AppData", "Local"), "darwin": Path("Library", "Caches")}
        try:
            folder = Path.home() / below.get(sys.platform, Path(".cache"))
        except RuntimeError:
            return None
    return folder / "geco_ray" / "Cache" if sys.platform == "win32" else folder / "geco_ray"


def _expanded(text: str, where: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise UserError(
            "the home folder is not known", where=where, found=text, remedy="Write the whole path instead of ~."
        ) from None
