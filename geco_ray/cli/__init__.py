"""The command line."""

import warnings

from geco_ray.cli.app import main
from geco_ray.errors import GecoRayWarning

__all__ = ["main"]

_with_source = warnings.formatwarning


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """A warning of ours is for the user and needs no line of source."""
    if issubclass(category, GecoRayWarning):
        return f"warning: {message}\n"
    return _with_source(message, category, filename, lineno, line)


warnings.formatwarning = _format_warning
