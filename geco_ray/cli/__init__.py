"""The command line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from geco_ray.cli import entry
from geco_ray.errors import GecoRayWarning
from geco_ray.table import visible

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of ``geco-ray``; a warning of ours is one line for the user, without a line of source."""
    with warnings.catch_warnings():
        warnings.showwarning = _show
        entry.main(argv)


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    shown = visible(str(message))
    ours = issubclass(category, GecoRayWarning)
    text = f"warning: {shown}\n" if ours else warnings.formatwarning(message, category, filename, lineno, line)
    (file or sys.stderr).write(text)
