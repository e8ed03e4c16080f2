"""``geco-ray view``: a grid's page in the browser, or its address where no browser can be opened."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

from rich.console import Console

from geco_ray.cli.output import PlainConsole


def page_address(folder: Path) -> str:
    """The ``file://`` address of the page in the report's ``folder``."""
    return (folder / "index.html").resolve().as_uri()


def show_page(folder: Path, out: Console, err: PlainConsole) -> bool:
    """Print the page's address, and open it where there is a screen; whether a browser was opened.

    Without a screen Python would begin a browser of the terminal, which takes it over, so none is asked for.
    """
    address = page_address(folder)
    opened = _has_screen() and _open(address)
    if not opened:
        err.print("No browser can be opened here; this is the page's address:", soft_wrap=True)
    out.print(address, soft_wrap=True)
    return opened


def _has_screen() -> bool:
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _open(address: str) -> bool:
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
