"""Explained sentences for the report: one on its page, all chosen ones on a page of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis.geco.sentences import Example, Word
from analysis.page import fill
from analysis.topic import Section

PAGE = "sentences.html"
_TEMPLATES = Path(__file__).with_name("templates")


def sentences_section(grid: str, shown: Sequence[Example]) -> Section:
    """The first of the chosen sentences as a section, and the page with all of them; at least one is chosen."""
    values = {"name": grid, "examples": shown, "example": shown[0], "page": PAGE, "style": word_style}
    return Section(
        anchor="sentence",
        label="A sentence",
        heading="A sentence as the explanations see it",
        html=fill("sentence.html", values, _TEMPLATES),
        files={PAGE: fill(PAGE, values, _TEMPLATES).encode()},
        contents={PAGE: "single sentences with their words coloured by attribution"},
    )


def word_style(word: Word) -> str:
    """Background of a word: the deeper, the larger its part of the sentence's attribution."""
    return f"background:rgba(0,114,178,{0.55 * word.depth:.2f})"
