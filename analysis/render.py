"""Views as Markdown or HTML; numbers as CSV."""

from __future__ import annotations

import html
from collections.abc import Sequence

import pandas as pd

from analysis.views import View


def notes_of(views: Sequence[View]) -> list[str]:
    """How the views' numbers are made: each note once, in the order in which it first appears."""
    return list(dict.fromkeys(note for view in views for note in view.notes))


def to_markdown(view: View) -> str:
    """The view as a GitHub table with a heading."""
    lines = [f"### {_cell(view.title)}", "", "| " + " | ".join(map(_cell, view.header)) + " |"]
    lines.append("|" + "|".join(":--" if not position else "--:" for position in range(len(view.header))) + "|")
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in view.rows]
    lines += ["", f"<sub>{html.escape(_cell(view.setup), quote=False)}</sub>"] if view.setup else []
    lines += [text for finding in view.findings for text in ("", _cell(finding))]
    return "\n".join(lines) + "\n"


def to_html(view: View) -> str:
    """The view as an HTML table; every text is escaped."""
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in view.header)
    body, split = [], len(view.rows) - view.footer
    for position, row in enumerate(view.rows):
        cells = f'<th scope="row">{html.escape(row[0])}</th>'
        cells += "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
        body.append(f"<tr{' class=foot' if position >= split else ''}>{cells}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def to_csv(table: pd.DataFrame) -> bytes:
    """The numbers at full use (ten significant digits), UTF-8, one line per row; null is an empty field."""
    text = table.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    return text.encode()


def markdown_page(heading: str, parts: Sequence[Sequence[View]]) -> str:
    """All views under one heading, those of each part followed by their notes."""
    lines = [f"## {_cell(heading)}\n"]
    for part in parts:
        notes = (f"<sub>{html.escape(note, quote=False)}</sub>\n" for note in notes_of(part))
        lines += [*map(to_markdown, part), *notes]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
