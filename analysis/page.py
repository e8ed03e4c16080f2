"""The report as HTML pages that need nothing else: inline style, inline SVG, no script, no link to another host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis import render
from analysis.figures import Picture
from analysis.sentences import Example, Word
from analysis.views import View


def index_page(
    name: str, counts: Sequence[tuple[str, int]], pictures: Sequence[Picture], views: Sequence[View],
    example: Example | None, downloads: Sequence[tuple[str, str]], *, warning: str | None = None,
) -> bytes:  # fmt: skip
    """The report's front page: figures, tables with their findings, one sentence, the list of files."""
    values = {
        "name": name, "counts": counts, "pictures": pictures, "views": views, "example": example,
        "downloads": downloads, "sections": render.sections(views), "topics": {view.topic for view in views},
        "warning": warning,
    }  # fmt: skip
    return _fill("index.html", values)


def sentences_page(name: str, examples: Sequence[Example]) -> bytes:
    """All chosen sentences under all models and methods."""
    return _fill("sentences.html", {"name": name, "examples": examples})


def inline_svg(picture: Picture) -> Markup:
    """The picture's SVG for an HTML page: no prolog, fluid width, ids that no other picture on the page has."""
    text = picture.svg.decode()
    text = text[text.index("<svg") :]
    head, rest = text.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    prefix = re.sub(r"[^A-Za-z0-9]", "-", picture.name)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", f"{head}>{rest}")
    label = Markup.escape(picture.alt)
    return Markup(text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1))


def word_style(word: Word) -> str:
    """Background of a word: the deeper, the larger its part of the sentence's attribution."""
    return f"background:rgba(0,114,178,{0.55 * word.depth:.2f})"


def _fill(template: str, values: dict[str, Any]) -> bytes:
    folder = Path(__file__).with_name("templates")
    environment = Environment(
        loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["svg"] = inline_svg
    environment.filters["table"] = lambda view: Markup(render.to_html(view))
    environment.filters["style"] = word_style
    return environment.get_template(template).render(**values).encode()
