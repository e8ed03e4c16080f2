"""What the corpus filters need to know of a sentence, and the parsers that tell it.

A parser is any callable from a text to its sentences; the filters look only at :class:`Token`. spaCy is one, and is
imported only if it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from geco_ray.errors import UserError


@dataclass(frozen=True)
class Token:
    """A token in the terms of Universal Dependencies.

    Attributes:
        text: as it stands, never blank.
        pos: part of speech, ``PROPN``, ``NOUN``, ``PRON``, ``VERB``, ...
        relation: its relation to its head, ``nsubj``, ``obj``, ...
        head: position of its head in the sentence; of the root, its own.
        features: morphology, such as ``Person`` to ``3``.
    """

    text: str
    pos: str
    relation: str
    head: int
    features: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ParsedSentence:
    """A sentence's tokens, exactly one of which is its own head.

    Raises:
        ValueError: no token, no or several roots, or a head outside the sentence: a fault of the parser.
    """

    tokens: tuple[Token, ...]

    def __post_init__(self) -> None:
        heads = [token.head for token in self.tokens]
        roots = [position for position, head in enumerate(heads) if head == position]
        if len(roots) != 1 or not all(0 <= head < len(heads) for head in heads):
            raise ValueError(f"a parsed sentence has one root and heads within itself, not the heads {heads}")

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens' texts."""
        return tuple(token.text for token in self.tokens)

    @property
    def root(self) -> int:
        """Position of the root."""
        return next(position for position, token in enumerate(self.tokens) if token.head == position)


class Parser(Protocol):
    """Splits a text into sentences and parses each."""

    def __call__(self, text: str) -> Iterable[ParsedSentence]:
        """The sentences of ``text`` in order."""


class SpacyParser:
    """spaCy as a parser; its English models name the features as the filters need them.

    Args:
        model: name of an installed spaCy pipeline with tagger, morphology and dependency parser.

    Raises:
        UserError: spaCy or the model is not installed; the message says how to install it.
    """

    def __init__(self, model: str = "en_core_web_sm") -> None:
        try:
            import spacy  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise UserError("the parser 'spacy' needs spaCy", remedy="Install it with `pip install spacy`.") from None
        try:
            self._pipeline = cast("Callable[[str], Any]", spacy.load(model))
        except OSError as error:
            remedy = f"Install it with `python -m spacy download {model}`."
            raise UserError(f"spaCy has no model {model!r}", remedy=remedy) from error

    def __call__(self, text: str) -> Iterator[ParsedSentence]:
        """The sentences of ``text``; blank tokens are left out, a sentence of blanks only is none."""
        for span in self._pipeline(text).sents:
            sentence = convert_spacy(span)
            if sentence is not None:
                yield sentence


def convert_spacy(span: Any) -> ParsedSentence | None:
    """A spaCy sentence as ours, or None if it holds blanks only."""
    kept = [token for token in span if not token.is_space]
    if not kept:
        return None
    place = {token.i: position for position, token in enumerate(kept)}
    # Where the root itself is a blank token there is no root left; the first word then stands for it.
    root = place.get(span.root.i, 0)
    tokens = (
        Token(
            token.text,
            token.pos_,
            token.dep_,
            position if position == root else place.get(token.head.i, root),
            dict(token.morph.to_dict()),
        )
        for position, token in enumerate(kept)
    )
    return ParsedSentence(tuple(tokens))
