"""Steps 1 and 2 of a corpus: titles from a saved book list, plain paragraphs from a saved article.

Both take HTML that somebody has saved; nothing here goes to the network, and no search engine is asked. GECOBench
(Frontiers in AI 2025, doi 10.3389/frai.2025.1694388) took the titles from Project Gutenberg's list of the most read
books and the paragraphs from the Wikipedia articles about them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from geco_ray.errors import UserError

_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_SECTIONS = {"address", "article", "aside", "blockquote", "div", "footer", "form", "header", "main", "nav", "section"}
_BLOCKS = _HEADINGS | _SECTIONS | {"dl", "fieldset", "figure", "hr", "ol", "p", "pre", "table", "ul"}
_HIDDEN = frozenset({"script", "style", "template", "noscript"})
_REFERENCE = re.compile(r"\[[^\[\]]*\]")
_DOWNLOADS = re.compile(r"\s+\(\d+\)$")


@dataclass(frozen=True)
class Book:
    """An entry of the list: its ``title``, and its ``author`` where the entry names one."""

    title: str
    author: str | None


def read_book_list(page: str) -> list[Book]:
    """The books of the first ordered list of a saved page, in its order.

    An entry reads "title by author (downloads)"; the last " by " parts title and author, since titles have one more
    often than names. Entries that are empty are left out.

    Raises:
        UserError: the page has no ordered list, or an empty one.
    """
    reader = _ListReader()
    reader.feed(page)
    reader.close()
    entries = [" ".join(entry.split()) for entry in reader.entries]
    books = [read_book(entry) for entry in entries if entry]
    if not books:
        raise UserError("the page has no ordered list with entries", expected="<ol><li>title by author (n)</li>...")
    return books


def read_book(entry: str) -> Book:
    """One entry of the list, without its number of downloads."""
    text = _DOWNLOADS.sub("", entry.strip())
    title, by, author = text.rpartition(" by ")
    return Book(title.strip(), author.strip()) if by and title.strip() else Book(text, None)


def read_paragraphs(page: str) -> list[str]:
    """The text of every paragraph element of a saved page, blanks collapsed, reference marks removed, none empty.

    Headings, lists and tables are no paragraphs; scripts and styles are no text.
    """
    reader = _ParagraphReader()
    reader.feed(page)
    reader.close()
    paragraphs = (strip_references(paragraph) for paragraph in reader.finished())
    return [paragraph for paragraph in paragraphs if paragraph]


def strip_references(text: str) -> str:
    """``text`` without anything in square brackets ("[12]", "[citation needed]"), blanks collapsed.

    Brackets within brackets go as a whole; a bracket without a partner stays.
    """
    before = None
    while before != text:
        before, text = text, _REFERENCE.sub("", text)
    return " ".join(text.split())


class _ListReader(HTMLParser):
    """Collects the items of the first ordered list; a list inside an item belongs to the item."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.entries: list[str] = []
        self._depth = 0
        self._done = False

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if self._done:
            return
        if self._depth and self.entries:
            self.entries[-1] += " "
        if tag == "ol" or (self._depth and tag == "ul"):
            self._depth += 1
        elif tag == "li" and self._depth == 1:
            self.entries.append("")

    def handle_endtag(self, tag: str) -> None:
        if self._depth and tag in ("ol", "ul"):
            self._depth -= 1
            self._done = not self._depth

    def handle_data(self, data: str) -> None:
        if self._depth and not self._done and self.entries:
            self.entries[-1] += data


class _ParagraphReader(HTMLParser):
    """Collects paragraph texts; a paragraph that is never closed ends where HTML ends it, at the next block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] | None = None
        self._texts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN
        if tag in _BLOCKS:
            self._end()
        if tag == "p":
            self._open = []
        elif tag == "br" and self._open is not None:
            self._open.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN and self._hidden:
            self._hidden -= 1
        if tag in _BLOCKS:
            self._end()

    def handle_data(self, data: str) -> None:
        if self._open is not None and not self._hidden:
            self._open.append(data)

    def finished(self) -> list[str]:
        self._end()
        return self._texts

    def _end(self) -> None:
        if self._open is not None:
            self._texts.append("".join(self._open))
            self._open = None
