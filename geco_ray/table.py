"""A table for people: cells with marked words, as Markdown, LaTeX or HTML, with every text escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
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
_SIGNS = re.compile(r"[\\`*<|~]|(?<!\w)_|_(?!\w)|(?<=\])\(|&(?=#?\w+;)")
_ENTITIES = {"<": "&lt;", "&": "&amp;"}
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "–": "--", "\n": " ", "Δ": r"$\Delta$", "×": r"$\times$", "≥": r"$\geq$",
    "≤": r"$\leq$", "−": "$-$", "“": "``", "”": "''",
}  # fmt: skip


@dataclass(frozen=True)
class Span:
    """A piece of a cell: its text, whether it is marked (bold or highlighted), and LaTeX that stands for it there."""

    text: str
    marked: bool = False
    latex: str | None = None


Cell = tuple[Span, ...]


@dataclass(frozen=True)
class PrintedTable:
    """A title, a header, rows of cells and notes below.

    Attributes:
        labelled: the first column is a label and the others are numbers, which stand on the right.
        footer: how many of the last rows describe the columns.
        narrow: a shorter header, for a terminal that is too narrow for the other one.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    labelled: bool = False
    footer: int = 0
    narrow: tuple[str, ...] = ()

    def render(self, form: str) -> str:
        """The table as ``markdown``, ``latex`` (a tabular with booktabs' rules) or ``html``, ending in a newline.

        Raises:
            UserError: another form.
        """
        if form not in FORMS:
            raise unknown_name("form of a table", form, FORMS)
        return {"markdown": _to_markdown, "latex": _to_latex, "html": _to_html}[form](self)


def cell(text: object, *, latex: str | None = None) -> Cell:
    """A cell of one unmarked piece; None is the sign for a missing value."""
    return (Span(MISSING if text is None else str(text), latex=latex),)


def plain(content: Cell) -> str:
    """The text of a cell without its marks."""
    return "".join(span.text for span in content)


def amount(count: int, one: str, many: str) -> str:
    """``1 model`` or ``3 models``."""
    return f"{count} {one if count == 1 else many}"


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
    return "".join(_LATEX.get(ch, ch) for ch in visible(text))


def escape_signs(text: str) -> str:
    """``text`` as Markdown on one line, with as few backslashes as show it as it stands: ``in_words`` has none."""
    line = visible(text).replace("\n", " ")
    return _SIGNS.sub(lambda found: _ENTITIES.get(found.group(), f"\\{found.group()}"), line)


def markdown_rows(table: PrintedTable, escape: Callable[[str], str] = escape_markdown) -> list[str]:
    """The lines of a GitHub table: header, rule, rows."""

    def show(content: Cell) -> str:
        return "".join(f"**{escape(span.text)}**" if span.marked else escape(span.text) for span in content)

    numbers = len(table.header) - 1
    rule = "|:--|" + "--:|" * numbers if table.labelled else "|" + "---|" * (numbers + 1)
    lines = ["| " + " | ".join(map(escape, table.header)) + " |", rule]
    return lines + ["| " + " | ".join(map(show, row)) + " |" for row in table.rows]


def _to_markdown(table: PrintedTable) -> str:
    lines = [f"**{escape_markdown(table.title)}**", "", *markdown_rows(table)]
    for note in table.notes:
        lines += ["", escape_markdown(note)]
    return "\n".join(lines) + "\n"


def _to_latex(table: PrintedTable) -> str:
    def show(content: Cell) -> str:
        parts = [span.latex if span.latex is not None else escape_latex(span.text) for span in content]
        return "".join(
            rf"\textbf{{{part}}}" if span.marked else part for part, span in zip(parts, content, strict=True)
        )

    def lines_of(rows: Sequence[tuple[Cell, ...]]) -> list[str]:
        return [" & ".join(map(show, row)) + r" \\" for row in rows]

    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table.title)}}}",
        rf"\begin{{tabular}}{{l{('r' if table.labelled else 'l') * (len(table.header) - 1)}}}",
        r"\toprule",
        " & ".join(map(escape_latex, table.header)) + r" \\",
        r"\midrule",
        *lines_of(table.rows[: len(table.rows) - table.footer]),
        *([r"\midrule", *lines_of(table.rows[len(table.rows) - table.footer :])] if table.footer else []),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par {escape_latex(note)}" for note in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def html_rows(table: PrintedTable) -> tuple[str, list[str]]:
    """The header row and the other rows of an HTML table; every text is escaped."""

    def show(content: Cell) -> str:
        parts = [(html.escape(visible(span.text)), span.marked) for span in content]
        return "".join(f"<mark>{part}</mark>" if marked else part for part, marked in parts)

    head = "<tr>" + "".join(f'<th scope="col">{html.escape(visible(name))}</th>' for name in table.header) + "</tr>"
    body, first = [], len(table.rows) - table.footer
    for position, row in enumerate(table.rows):
        cells = [f"<td>{show(content)}</td>" for content in row]
        if table.labelled:
            cells[0] = f'<th scope="row">{show(row[0])}</th>'
        body.append(f"<tr{' class=foot' if position >= first else ''}>{''.join(cells)}</tr>")
    return head, body


def bare_html(table: PrintedTable) -> str:
    """The table alone, on one line: for a page that shows its title and notes itself."""
    head, body = html_rows(table)
    return f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"


def _to_html(table: PrintedTable) -> str:
    head, body = html_rows(table)
    caption = f"<caption>{html.escape(table.title)}</caption>"
    notes = [f"<p>{html.escape(note)}</p>" for note in table.notes]
    lines = ["<table>", caption, f"<thead>{head}</thead>", "<tbody>", *body, "</tbody>", "</table>", *notes]
    return "\n".join(lines) + "\n"
