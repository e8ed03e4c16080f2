"""Views as Markdown or HTML; numbers as CSV."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

import pandas as pd

from analysis.views import View
from geco_ray.table import visible

_MARKS = re.compile(r"[\\`*<|~]|(?<!\w)_|_(?!\w)|(?<=\])\(|&(?=#?\w+;)")
_ENTITIES = {"<": "&lt;", "&": "&amp;"}


def sections(views: Sequence[View]) -> list[tuple[list[View], list[str]]]:
    """The views of each benchmark, in order, with their notes."""
    topics = list(dict.fromkeys(view.topic for view in views))
    parts = [[view for view in views if view.topic == topic] for topic in topics]
    return [(part, notes_of(part)) for part in parts]


def notes_of(views: Sequence[View]) -> list[str]:
    """How the views' numbers are made: each note once, in the order in which it first appears."""
    return list(dict.fromkeys(note for view in views for note in view.notes))


def to_markdown(view: View) -> str:
    """The view as a GitHub table with a heading."""
    lines = [f"### {_cell(view.title)}", "", "| " + " | ".join(map(_cell, view.header)) + " |"]
    lines.append("|" + "|".join(":--" if not position else "--:" for position in range(len(view.header))) + "|")
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in view.rows]
    lines += ["", _small(view.setup)] if view.setup else []
    lines += [text for finding in view.findings for text in ("", _cell(finding))]
    return "\n".join(lines) + "\n"


def to_html(view: View) -> str:
    """The view as an HTML table; every text is escaped."""
    head = "".join(f'<th scope="col">{html.escape(visible(name))}</th>' for name in view.header)
    body, split = [], len(view.rows) - view.footer
    for position, row in enumerate(view.rows):
        cells = f'<th scope="row">{html.escape(visible(row[0]))}</th>'
        cells += "".join(f"<td>{html.escape(visible(cell))}</td>" for cell in row[1:])
        body.append(f"<tr{' class=foot' if position >= split else ''}>{cells}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def to_csv(table: pd.DataFrame) -> bytes:
    """The numbers at full use (ten significant digits), UTF-8, one line per row; null is an empty field."""
    text = table.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    return text.encode()


def markdown_page(heading: str, views: Sequence[View]) -> str:
    """All views under one heading, each benchmark's followed by its notes."""
    lines = [f"## {_cell(heading)}\n"]
    for part, notes in sections(views):
        lines += [*map(to_markdown, part), *(f"{_small(note)}\n" for note in notes)]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """``text`` on one line, so that Markdown shows every sign of it; an underscore within a word is none."""
    return _MARKS.sub(
        lambda found: _ENTITIES.get(found.group(), f"\\{found.group()}"), visible(text).replace("\n", " ")
    )


def _small(text: str) -> str:
    return f"<sub>{_cell(text).replace('>', '&gt;')}</sub>"
