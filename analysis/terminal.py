"""Views for a terminal or a pipe: a table takes the width it needs, and no digit is ever cut off.

On a terminal, long labels and headers wrap (at blanks and after underscores) as far as that helps; a table that still
does not fit is wider than the terminal. Into a file or a pipe every row is one line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from analysis.views import View

_ANY = 1_000_000  # characters, wider than any table


class _Uncut:
    """A renderable at its own width, whatever the console's."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self._inner, options.update(width=_ANY))


def to_rich(view: View, width: int | None = None) -> RenderableType:
    """The view as its title, a ruled table and its findings, to be printed with ``crop=False``.

    Args:
        view: the table to show.
        width: characters per line that the table should fit into if it can; None for one line per row.
    """
    short = width is not None and _needs(view.header, view.rows, 3) > width
    header = view.narrow if short and view.narrow else view.header
    rows = _shortened(header, view.rows, width) if short and width is not None else list(view.rows)
    columns = list(zip(header, *rows, strict=True))
    widths = _widths(columns, None if width is None else width - (2 if short else 3) * (len(columns) - 1))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0) if short else (0, 1))
    for position, (name, size) in enumerate(zip(header, widths, strict=True)):
        justify = "right" if position else "left"
        table.add_column(_folded(name, size), justify=justify, width=size, no_wrap=True)  # type: ignore[arg-type]
    body = len(rows) - view.footer
    for position, row in enumerate(rows):
        cells = [_folded(cell, size) for cell, size in zip(row, widths, strict=True)]
        style = "dim" if position >= body else ""
        table.add_row(*cells, style=style, end_section=position == body - 1 and view.footer > 0)
    below = [Text(_abbreviations(view), style="dim")] if header != view.header else []
    below += [Text(view.setup, style="dim")] if view.setup else []
    below += [Text(finding) for finding in view.findings]
    title = Text(view.title, style="bold")
    return Group(title if width is not None else _Uncut(title), Text(""), _Uncut(table), *below, Text(""))


def print_views(views: Sequence[View], console: Console) -> None:
    """Print the views, fitted to the terminal, or at full width where there is none."""
    for view in views:
        console.print(to_rich(view, console.width if console.is_terminal else None), crop=False)


def _needs(header: Sequence[str], rows: Sequence[Sequence[str]], gap: int) -> int:
    widths = [max(map(cell_len, column)) for column in zip(header, *rows, strict=True)]
    return sum(widths) + gap * (len(widths) - 1)


def _shortened(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[tuple[str, ...]]:
    """Rows with ``0.71±0.03`` for ``0.71 ± 0.03``; with the deviation on a line of its own if that is too wide."""
    tight, broken = ([tuple(cell.replace(" ± ", sign) for cell in row) for row in rows] for sign in ("±", " ±"))
    least = sum(map(_least, zip(header, *tight, strict=True))) + 2 * (len(header) - 1)
    return tight if least <= width else broken


def _least(column: Sequence[str]) -> int:
    """The width of the longest piece of text that is not broken."""
    return max(cell_len(piece.strip()) for text in column for piece in _pieces(text))


def _widths(columns: Sequence[Sequence[str]], room: int | None) -> list[int]:
    """Column widths that sum up to ``room`` at most, unless the longest pieces of text need more."""
    widths = [max(map(cell_len, column)) for column in columns]
    least = [_least(column) for column in columns]
    while room is not None and sum(widths) > room:
        wider = [(width, place) for place, width in enumerate(widths) if width > least[place]]
        if not wider:
            break
        widest, place = max(wider)
        widths[place] = widest - 1
    return widths


def _pieces(text: str) -> list[str]:
    return re.split(r"(?<=_)|(?=\s)", text)


def _folded(text: str, width: int) -> Text:
    """``text`` in lines of ``width`` characters, broken at blanks and after underscores only; never read as markup."""
    done, line = [], ""
    for piece in _pieces(text):
        if line and cell_len(line + piece) > width:
            done.append(line)
            line = piece.lstrip()
        else:
            line += piece
    return Text("\n".join([*done, line]))


def _abbreviations(view: View) -> str:
    pairs = zip(view.narrow, view.header, strict=True)
    return ", ".join(f"{short} = {name}" for short, name in pairs if short != name)
