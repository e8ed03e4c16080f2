"""Tables for a terminal or a pipe, in two kinds; neither ever cuts off a digit.

:func:`fitted_table`: tables of numbers, which take the width they need. On a terminal, long labels and headers wrap
(at blanks and after underscores) as far as that helps; a table that still does not fit is wider than the terminal.
Into a file or a pipe every row is one line.

:func:`show_table`: tables of words, whose cells are folded into the width.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from geco_ray.table import Cell, PrintedTable, plain

_ANY = 1_000_000  # characters, wider than any table


class _Uncut:
    """A renderable at its own width, whatever the console's."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self._inner, options.update(width=_ANY))


def fitted_table(
    table: PrintedTable, width: int | None = None, remark: str = "", findings: Sequence[str] = ()
) -> RenderableType:
    """A table as its title, ruled rows and what is said of it, to be printed with ``crop=False``.

    Args:
        table: the table to show; marks are not.
        width: characters per line that the table should fit into if it can; None for one line per row.
        remark: stands dimmed below the table. findings: follow it.
    """
    texts = [tuple(map(plain, row)) for row in table.rows]
    short = width is not None and _needs(table.header, texts, 3) > width
    header = table.narrow if short and table.narrow else table.header
    rows = _shortened(header, texts, width) if short and width is not None else texts
    columns = list(zip(header, *rows, strict=True))
    widths = _widths(columns, None if width is None else width - (2 if short else 3) * (len(columns) - 1))
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0) if short else (0, 1))
    for position, (name, size) in enumerate(zip(header, widths, strict=True)):
        justify = "right" if position else "left"
        shown.add_column(_folded(name, size), justify=justify, width=size, no_wrap=True)  # type: ignore[arg-type]
    body = len(rows) - table.footer
    for position, row in enumerate(rows):
        cells = [_folded(cell, size) for cell, size in zip(row, widths, strict=True)]
        style = "dim" if position >= body else ""
        shown.add_row(*cells, style=style, end_section=position == body - 1 and table.footer > 0)
    below = [Text(_abbreviations(table), style="dim")] if header != table.header else []
    below += [Text(remark, style="dim")] if remark else []
    below += [Text(finding) for finding in findings]
    title = Text(table.title, style="bold")
    return Group(title if width is not None else _Uncut(title), Text(""), _Uncut(shown), *below, Text(""))


def rich_table(table: PrintedTable) -> Table:
    """A table of words, marked ones in bold."""
    shown = Table(title=table.title, title_justify="left", caption="\n".join(table.notes) or None, show_edge=False)
    for name in table.header:
        shown.add_column(name, overflow="fold")
    for row in table.rows:
        shown.add_row(*map(_text, row))
    return shown


def show_table(console: Console, table: PrintedTable) -> None:
    """Print a table of words; where they would be cut in two to make it fit, one block per row instead."""
    shown = rich_table(table)
    if _keeps_words(shown, table, console.width):
        console.print(shown)
        return
    console.print(table.title)
    for row in table.rows:
        block = Table(title=_text(row[0]), title_justify="left", title_style="", show_edge=False, show_header=False)
        block.add_column(overflow="fold")
        block.add_column(overflow="fold")
        for name, content in zip(table.header[1:], row[1:], strict=True):
            block.add_row(name, _text(content))
        console.print()
        console.print(block)
    for note in table.notes:
        console.print(note)


def _keeps_words(shown: Table, table: PrintedTable, width: int) -> bool:
    """Whether every word of the header and the cells stands whole in the table at this width."""
    page = Console(width=width, file=io.StringIO())
    with page.capture() as captured:
        page.print(shown)
    printed = set(re.split(r"[\s│┃]+", captured.get()))
    texts = [*table.header, *(_text(content).plain for row in table.rows for content in row)]
    return all(word in printed for text in texts for word in text.split())


def _text(content: Cell) -> Text:
    return Text.assemble(*((span.text, "bold") if span.marked else span.text for span in content))


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


def _abbreviations(table: PrintedTable) -> str:
    pairs = zip(table.narrow, table.header, strict=True)
    return ", ".join(f"{short} = {name}" for short, name in pairs if short != name)
