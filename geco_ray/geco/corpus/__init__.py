"""From saved web pages to sentences that can be labelled: book list, paragraphs, parser, filters, selection.

What stays a person's work, in the paper and here: finding the articles, writing the lists of human subjects, taking
only sentences of the plot, and labelling. The released sentences cannot be made again by these steps alone.
"""

from __future__ import annotations

from geco_ray.geco.corpus.filters import Candidate, Subject
from geco_ray.geco.corpus.pages import Book, read_book, read_book_list, read_paragraphs, strip_references
from geco_ray.geco.corpus.parsing import ParsedSentence, Parser, SpacyParser, Token
from geco_ray.geco.corpus.selection import STEPS, Dropped, Selection, draft_labelling, select_sentences

__all__ = [
    "STEPS",
    "Book",
    "Candidate",
    "Dropped",
    "ParsedSentence",
    "Parser",
    "Selection",
    "SpacyParser",
    "Subject",
    "Token",
    "draft_labelling",
    "read_book",
    "read_book_list",
    "read_paragraphs",
    "select_sentences",
    "strip_references",
]
