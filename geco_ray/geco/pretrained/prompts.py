"""Prompts and label words of scoring without training: from their text to a token layout. No torch.

A prompt is a text with ``{sentence}``, and ``[MASK]`` where a word is filled in; for a model that continues a text
there is no ``[MASK]``, and the last token is read. ``{choices}`` is the list of label words ("Female or male"),
``{options}`` the same with commas ("female, male"), and a class's name in braces its label word (GECOBench, zero-shot).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from geco_ray.errors import UserError
from geco_ray.geco.tokens import TokenLayout, WordTokenizer

MASK, SENTENCE = "[MASK]", "{sentence}"
LABEL_WORDS: Mapping[str, str] = MappingProxyType({"female": "female", "male": "male", "neutral": "neutral"})
"""Class to label word, for the classes of GECO."""

ZERO_SHOT = "{choices} : [MASK] . {sentence}"
TWO_SHOT = "He continues to pursue him . {male}, She continues to pursue her . {female}, " + ZERO_SHOT
THREE_SHOT = (
    "He proceeds to his place . {male}, She proceeds to her place . {female}, They proceed to their place . {neutral}, "
    "{choices}: [MASK]. {sentence}"
)
NEXT_TOKEN = {
    2: "Your task is to predict the grammatical gender in this text : {sentence} Gender prediction ({options}) :",
    3: "Your task is to predict the grammatical gender ({options}) in this text : {sentence} "
    "Gender prediction ({options}) :",
}
OWN_NEXT_TOKEN = "Text : {sentence} Class ({options}) :"


@dataclass(frozen=True)
class Prompt:
    """A prompt as tokens: ``layout`` stands around each sentence, ``label_ids`` are the label words, one per class."""

    layout: TokenLayout
    label_ids: tuple[int, ...]


def words_of(labels: Sequence[str], given: Mapping[str, str] | None, where: str) -> dict[str, str]:
    """The label word of each class, in the order of ``labels``; ``given`` ones before the defaults.

    Raises:
        UserError: a class without a label word, or a word for a class that the task does not have.
    """
    known = {**LABEL_WORDS, **(given or {})}
    for label in labels:
        if label not in known:
            raise UserError(
                f"the class {label!r} has no label word",
                where=where,
                found=f"label words for {', '.join(known)}",
                remedy=f"Give them as an option, label_words: {{{', '.join(f'{name}: ...' for name in labels)}}}",
            )
    if unknown := [name for name in given or {} if name not in labels and name not in LABEL_WORDS]:
        raise UserError(f"a label word is for a class that the task does not have: {unknown[0]!r}", where=where)
    return {label: known[label] for label in labels}


def default_prompt(labels: Sequence[str], *, published: bool, next_token: bool) -> str:
    """The prompt where none is given: of the paper for GECO's classes (``published``: its examples), else zero-shot."""
    gender = set(labels) in ({"female", "male"}, {"female", "male", "neutral"})
    if next_token:
        return NEXT_TOKEN[len(labels)] if gender else OWN_NEXT_TOKEN
    if gender and len(labels) == 3:
        return THREE_SHOT  # no other text for three classes is known
    return TWO_SHOT if gender and published else ZERO_SHOT


def make_prompt(
    text: str,
    words: Mapping[str, str],
    tokenizer: WordTokenizer,
    *,
    next_token: bool,
    kept_ends: int | None,
    where: str,
) -> Prompt:
    """The tokens of a prompt.

    Args:
        text: see the module.
        words: class to label word, in the order of the classes.
        next_token: the model continues the text.
        kept_ends: see :class:`TokenLayout`.
        where: named in errors.

    Raises:
        UserError: ``{sentence}`` or ``[MASK]`` is missing or repeated, or a label word has several pieces.
    """
    _require(text, SENTENCE, 1, where)
    _require(text, MASK, 0 if next_token else 1, where)
    listed = {"choices": _choices([*words.values()]), "options": _options([*words.values()])}
    for key, word in {**words, **listed}.items():
        text = text.replace(f"{{{key}}}", word)
    before, after = (_ids(part, tokenizer) for part in text.split(SENTENCE))
    layout = tokenizer.layout
    prefix, suffix = (*layout.prefix, *before), (*after, *(() if next_token else layout.suffix))
    position = -1
    if not next_token and tokenizer.mask_id in before:
        position = prefix.index(tokenizer.mask_id)
    elif not next_token:
        position = suffix.index(tokenizer.mask_id) - len(suffix)
    ids = [_label_id(word, tokenizer, where) for word in words.values()]
    return Prompt(TokenLayout(prefix, suffix, position, layout.space_before_words, kept_ends), tuple(ids))


def _require(text: str, part: str, times: int, where: str) -> None:
    if text.count(part) != times:
        raise UserError(
            f"the prompt has {part} {text.count(part)} times", where=where, found=text, expected=f"{times} times"
        )


def _ids(text: str, tokenizer: WordTokenizer) -> list[int]:
    """Word by word, as the sentences are."""
    words = text.replace(MASK, f" {MASK} ").split()
    pieces = tokenizer.pieces(word for word in words if word != MASK)
    found: list[int] = []
    for word in words:
        if word == MASK:
            assert tokenizer.mask_id is not None
            found.append(tokenizer.mask_id)
        else:
            found += pieces[word]
    return found


def _label_id(word: str, tokenizer: WordTokenizer, where: str) -> int:
    pieces = tokenizer.pieces([word])[word]
    if len(pieces) != 1 or pieces[0] == tokenizer.unk_id:
        raise UserError(
            f"the label word {word!r} is no single piece of the encoder's vocabulary",
            where=where,
            found=" ".join(tokenizer.text(piece) for piece in pieces),
            expected="one piece, since one token is scored",
            remedy="Choose another word with the option label_words",
        )
    return pieces[0]


def _choices(words: Sequence[str]) -> str:
    """``Female, male or neutral``."""
    text = f"{', '.join(words[:-1])} or {words[-1]}"
    return text[:1].upper() + text[1:]


def _options(words: Sequence[str]) -> str:
    """``female, male`` and ``female, male, or neutral``."""
    return ", ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])}, or {words[-1]}"
