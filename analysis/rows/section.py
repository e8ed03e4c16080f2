"""A section of the page in which single rows can be looked at: its data, and the place where the script shows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from analysis.rows.sampling import compact
from analysis.topic import Section
from geco_ray.table import visible


def rows_section(
    kind: str, label: str, heading: str, lead: Sequence[str], groups: Sequence[dict[str, Any]], script: Path
) -> Section:
    """Rows of one kind.

    Args:
        kind: the name by which the script finds its place and its data.
        label: in the page's navigation. heading: above the section. lead: sentences below it.
        groups: the data, a group for each thing that a reader chooses first; without any there is no script.
        script: JavaScript that shows them; it may use ``page`` of ``analysis/templates/page.js``.
    """
    text = Markup("").join(Markup('<p class="quiet">{}</p>\n').format(visible(line)) for line in lead)
    place = Markup('<div class="rows" data-kind="{0}" data-source="rows-{0}"></div>\n').format(kind) if groups else ""
    data = Markup('<script type="application/json" id="rows-{}">{}</script>\n').format(kind, _inside(groups))
    shows = Markup("<script>\n{}</script>\n").format(Markup(script.read_text(encoding="utf-8")))
    without = Markup("<noscript><p>Rows are shown by the page's script, which is switched off here.</p></noscript>\n")
    html = text + (place + without + data + shows if groups else Markup(""))
    return Section(anchor=kind, label=str(escape(label)), heading=heading, html=html)


def _inside(groups: Sequence[dict[str, Any]]) -> Markup:
    """JSON that no parser of HTML takes for markup, whatever texts it holds."""
    text = compact(_plain(list(groups))).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(text)


def _plain(value: Any) -> Any:
    """``value`` with every text free of characters that steer a page."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return {_plain(key): _plain(item) for key, item in value.items()} if isinstance(value, dict) else value
