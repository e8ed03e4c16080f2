"""Where data are looked for: the user's folder, or ``$GECO_RAY_DATA`` and the cache of downloads."""

from __future__ import annotations

import os
import sys
from pathlib import Path

DATA_ENV = "GECO_RAY_DATA"
CACHE_ENV = "GECO_RAY_CACHE"


def data_roots(data_dir: Path | None) -> list[Path]:
    """Folders that are searched: only ``data_dir`` when one is given, else ``$GECO_RAY_DATA`` and the cache."""
    if data_dir is not None:
        return [Path(data_dir)]
    named = os.environ.get(DATA_ENV)
    return ([Path(named)] if named else []) + [cache_dir()]


def cache_dir() -> Path:
    """Where downloads are kept: ``$GECO_RAY_CACHE``, else the user cache of the platform plus ``geco_ray``."""
    chosen = os.environ.get(CACHE_ENV)
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else Path.home() / "AppData" / "Local") / "geco_ray" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "geco_ray"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "geco_ray"
