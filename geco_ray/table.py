"""A table for people: cells with marked words, as Markdown, LaTeX or HTML, with every text escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geco_ray.errors import unknown_name

if TYPE_CHECKING:
    import pyarrow as pa

FORMS = ("markdown", "latex", "html")
MISSING = "–"

# Control characters but tab and line feed, line separators, signs that turn a line's direction, what is no character.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#~])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "–": "--",
    "\n": " ",
}


@dataclass(frozen=True)
class Span:
    """A piece of a cell: its text, whether it is marked (bold or highlighted), and LaTeX that stands for it there."""

    text: str
    marked: bool = False
    latex: str | None = None


Cell = tuple[Span, ...]


@dataclass(frozen=True)
class PrintedTable:
    """A title, a header, rows of cells and notes below."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def render(self, form: str) -> str:
        """The table as ``markdown``, ``latex`` (a plain tabular, no package needed) or ``html``, ending in a newline.

        Raises:
            UserError: another form.
        """
        if form not in FORMS:
            raise unknown_name("form of a table", form, FORMS)
        return {"markdown": _to_markdown, "latex": _to_latex, "html": _to_html}[form](self)


def cell(text: object, *, latex: str | None = None) -> Cell:
    """A cell of one unmarked piece; None is the sign for a missing value."""
    return (Span(MISSING if text is None else str(text), latex=latex),)


def printed(table: pa.Table, title: str, *, digits: int = 4, notes: Sequence[str] = ()) -> PrintedTable:
    """Any table of this package for people: floats with ``digits`` decimals, lists joined by slashes."""
    rows = tuple(
        tuple(cell(_text(record[name], digits)) for name in table.column_names) for record in table.to_pylist()
    )
    header = tuple(name.replace("_", " ") for name in table.column_names)
    return PrintedTable(title, header, rows, tuple(notes))


def _text(value: object, digits: int) -> str | None:
    if isinstance(value, list):
        return " / ".join(str(_text(item, digits)) for item in value)
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return None if value is None else str(value)


def visible(text: str) -> str:
    """``text`` with every character that would steer a terminal or a page written as ``\\uXXXX``, as JSON does."""
    return _STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def escaped(text: str) -> str:
    """``text`` in ASCII, every other character as JSON writes it, so that escaped JSON stays JSON."""
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True))


def escape_markdown(text: str) -> str:
    """``text`` so that Markdown shows it as it stands, on one line."""
    return _MARKDOWN.sub(r"\\\1", text).replace("\n", " ")


def escape_latex(text: str) -> str:
    """``text`` so that LaTeX shows it as it stands, on one line."""
    return "".join(_LATEX.get(ch, ch) for ch in text)


def _to_markdown(table: PrintedTable) -> str:
    def show(content: Cell) -> str:
        parts = [f"**{escape_markdown(span.text)}**" if span.marked else escape_markdown(span.text) for span in content]
        return "".join(parts)

    lines = [f"**{escape_markdown(table.title)}**", ""]
    lines.append("| " + " | ".join(map(escape_markdown, table.header)) + " |")
    lines.append("|" + "---|" * len(table.header))
    lines += ["| " + " | ".join(map(show, row)) + " |" for row in table.rows]
    for note in table.notes:
        lines += ["", escape_markdown(note)]
    return "\n".join(lines) + "\n"


def _to_latex(table: PrintedTable) -> str:
    def show(content: Cell) -> str:
        parts = [span.latex if span.latex is not None else escape_latex(span.text) for span in content]
        return "".join(
            rf"\textbf{{{part}}}" if span.marked else part for part, span in zip(parts, content, strict=True)
        )

    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table.title)}}}",
        rf"\begin{{tabular}}{{{'l' * len(table.header)}}}",
        r"\hline",
        " & ".join(map(escape_latex, table.header)) + r" \\",
        r"\hline",
        *(" & ".join(map(show, row)) + r" \\" for row in table.rows),
        r"\hline",
        r"\end{tabular}",
        *(rf"\par {escape_latex(note)}" for note in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _to_html(table: PrintedTable) -> str:
    def show(content: Cell) -> str:
        parts = [html.escape(span.text) for span in content]
        return "".join(
            f"<mark>{part}</mark>" if span.marked else part for part, span in zip(parts, content, strict=True)
        )

    lines = [
        "<table>",
        f"<caption>{html.escape(table.title)}</caption>",
        "<thead><tr>" + "".join(f'<th scope="col">{html.escape(name)}</th>' for name in table.header) + "</tr></thead>",
        "<tbody>",
        *("<tr>" + "".join(f"<td>{show(content)}</td>" for content in row) + "</tr>" for row in table.rows),
        "</tbody>",
        "</table>",
        *(f"<p>{html.escape(note)}</p>" for note in table.notes),
    ]
    return "\n".join(lines) + "\n"
