"""Where the command line writes: consoles that show text of users as it stands, streams that can write all of it."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from geco_ray.table import escaped, visible

_ESCAPE = "geco_ray.escape"


class PlainConsole(Console):
    """A console that shows every text as it stands: no markup, no emoji codes, no control characters of a user's."""

    def __init__(self, *, stderr: bool = False, width: int | None = None, file: IO[str] | None = None) -> None:
        super().__init__(stderr=stderr, width=width, file=file, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """As rich's, so that the width of a cell counts what is shown."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich's, with what would steer the terminal made visible."""
        for segment in super().render(renderable, options):
            clean = segment.text if segment.control else visible(segment.text)
            yield segment if clean == segment.text else Segment(clean, segment.style)


def labelled(label: str, style: str, text: str) -> Text:
    """A line that begins with a word in colour."""
    return Text.assemble((label, style), " ", text)


def prepare_streams() -> None:
    """Let stdout and stderr write ``\\uXXXX`` for what their encoding lacks (cp1252, a C locale, odd file names)."""
    codecs.register_error(_ESCAPE, _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ESCAPE)


def _escape(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return escaped(error.object[error.start : error.end]), error.end
