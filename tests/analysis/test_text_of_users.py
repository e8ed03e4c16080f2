"""Names of users are drawn and written as they are: no formulas, no markup, nothing left out without a word."""

from __future__ import annotations

import html
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures import Picture, PlainFigure, heading, render
from analysis.geco.figures.bias import bias_figure
from analysis.page import index_page
from analysis.views import View, to_markdown
from geco_ray.table import bare_html

NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)


def figure_of(*names: str) -> Picture:
    rows = [
        {"task": f"t{names[0]}", "scope": "train+test", "reading": "paper", "label": name, "bias": 0.5, "ideal": 0.5}
        for name in names
    ]
    return bias_figure(pd.DataFrame(rows))


@settings(max_examples=15, deadline=None)
@given(NAMES, NAMES)
@example("from $10_{k", "over ^^$ x")
@example("_left out", "<b>&amp;--></b>")
@example("a\x00\x1b[31m", "\u202eb\ufffe")
def test_any_name_is_drawn_and_the_svg_is_well_formed(one: str, other: str) -> None:
    ElementTree.fromstring(figure_of(one, other).svg)


@pytest.mark.parametrize(
    ("name", "says"), [("年轻", "lacks some letters"), ("👩", "lacks some letters"), ("שלום", "Right-to-left")]
)
def test_a_figure_says_what_its_font_and_direction_cannot_show(name: str, says: str) -> None:
    assert says in figure_of(name, "b").alt
    assert says not in figure_of("größer", "b_$").alt


def test_the_sentence_stands_in_the_picture_too() -> None:
    """The heading gets a line more, so the picture differs from one whose names the font has."""
    seen: list[str] = []

    def draw() -> Figure:
        figure = PlainFigure()
        figure.text(0, 0, "年")
        heading(figure, "title", "subtitle")
        seen.append(figure.texts[-1].get_text())
        return figure

    render("name", "alt", draw)
    assert "lacks some letters" not in seen[0]
    assert "lacks some letters" in " ".join(seen[1].split())


@pytest.mark.parametrize("label", ["_a", "__", "$", "_nolegend_"])
def test_a_legend_leaves_no_name_out(label: str) -> None:
    legend = PlainFigure().legend(handles=[Line2D([], [], label=label), Line2D([], [], label="b")])
    assert [text.get_text() for text in legend.get_texts()] == [label, "b"]


MARKS = "<b>*x*_y_`z`[u](v)|~w~&amp;\\"


def test_pages_show_names_as_text() -> None:
    view = View("key", MARKS, ("a", MARKS), ((MARKS, "1"),), setup=MARKS)
    assert html.escape(MARKS) in bare_html(view.table)
    assert "<b>" not in bare_html(view.table)
    markdown = to_markdown(view)
    for piece in ("<b>", " *x*", "*_y_", "_`z", "](v", "&amp;\\|"):
        assert piece not in markdown
    assert "in_words and 5 [1, 2]" in to_markdown(View("key", "in_words and 5 [1, 2]", ("a",), ()))


def test_a_page_holds_no_control_character() -> None:
    name = "a\x1b[31m\u202eb\x00<i>"
    html_page = index_page(name, "", (), (), (), (), ((name, name),), "").decode()
    assert "a\\u001b[31m\\u202eb\\u0000&lt;i&gt;" in html_page
    assert "a\\u001b[31m" in bare_html(View("key", "t", (name,), ()).table)
