"""The report as HTML pages that need nothing else: style, SVG, data and script inline, no link to another host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis.figures import Picture
from analysis.topic import Section
from analysis.views import View, notes_of
from geco_ray.table import bare_html, visible


def index_page(
    name: str, lead: str, counts: Sequence[tuple[str, int]], pictures: Sequence[Picture],
    parts: Sequence[Sequence[View]], sections: Sequence[Section], downloads: Sequence[tuple[str, str]],
    nothing: str, warning: str | None = None, about: Sequence[tuple[str, str]] = (), closing: Sequence[View] = (),
) -> bytes:  # fmt: skip
    """The report's front page: what was run, findings, tables, figures, further sections, the list of files.

    Args:
        name: the grid. lead: what the report is about. counts: finished cells by stage.
        pictures: the figures. parts: the tables, each benchmark's together. sections: what follows them.
        downloads: file names and what they hold.
        nothing: what stands in the place of all this where there is no table.
        warning: what a reader has to know of how the cells were computed.
        about: what was run, as names and values. closing: tables of how the run went, below all else.
    """
    values = {
        "name": name, "lead": lead, "counts": counts, "pictures": pictures, "sections": sections, "nothing": nothing,
        "parts": [(views, notes_of(views)) for views in parts], "downloads": downloads, "warning": warning,
        "about": about, "closing": closing, "script": _script(),
    }  # fmt: skip
    return fill("index.html", values).encode()


def _script() -> Markup:
    return Markup(Path(__file__).with_name("templates").joinpath("page.js").read_text(encoding="utf-8"))


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


def _shown(value: object) -> object:
    """A text of a user without control characters, which no page may hold; all else as it is."""
    return visible(value) if type(value) is str else value


def fill(template: str, values: dict[str, Any], folder: Path | None = None) -> Markup:
    """A filled template of ``folder``, or of this package; either may extend ``base.html``."""
    own = Path(__file__).with_name("templates")
    environment = Environment(
        loader=FileSystemLoader([own] if folder is None else [folder, own]), autoescape=True, finalize=_shown,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["svg"] = inline_svg
    environment.filters["table"] = lambda view: Markup(bare_html(view.table))
    return Markup(environment.get_template(template).render(**values))
