"""The inline markup of a labelled sentence: ``(She|He|They) (sees|sees|see) (her|his|their) (mother|father*|parent) .``

Words are separated by blanks, punctuation included. A slot in brackets holds the word's form for each class, in the
order of the classes. A slot without a star belongs to the grammatical subject and is turned in both versions; a slot
with a star belongs to someone else, is turned in version ``all`` only, and keeps the starred form in ``subj``. An
empty form repeats the one before it: ``(sees||see)``. The neutral form, when it is the last
of three, may be left out and is then derived by rule.
The source sentence has the starred forms; its subject is of the first class that the first star does not name, so the
two persons differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from geco_ray.errors import UserError

_PIECE = re.compile(r"\((?P<slot>[^()]*\|[^()]*)\)|(?P<word>\S+)")


@dataclass(frozen=True, slots=True)
class Slot:
    """A marked word: its position, its form per class, and the index of the starred form (None: the subject's)."""

    position: int
    forms: tuple[str, ...]
    star: int | None


def parse_markup(text: str, classes: Sequence[str], where: str) -> tuple[list[str], list[Slot]]:
    """Split a marked sentence into the words of its source and its slots.

    Raises:
        UserError: a bracket that is not closed, the wrong number of forms, an empty form, two stars, no slot at all.
    """
    words: list[str] = []
    slots: list[Slot] = []
    end = 0
    for match in _PIECE.finditer(text):
        gap = text[end : match.start()]
        if gap.strip() or (words and not gap):
            raise UserError(f"a blank is missing before {match.group()!r}", where=where)
        end = match.end()
        if match["slot"] is None:
            word = match["word"]
            if "|" in word or (word.startswith("(") and len(word) > 1):
                raise UserError(
                    f"cannot read the slot at {text[match.start() :][:30]!r}",
                    where=where,
                    expected="(form|form|form) between blanks",
                )
            words.append(word)
        else:
            slot = _slot(match["slot"], len(words), classes, where)
            slots.append(slot)
            words.append("")
    if not words:
        raise UserError("the sentence is empty", where=where)
    if not slots:
        raise UserError("no word of the sentence is marked", where=where, expected="(form|form) for a word that turns")
    first = next((slot.star for slot in slots if slot.star is not None), None)
    subject = 1 if first == 0 else 0
    for slot in slots:
        words[slot.position] = slot.forms[subject if slot.star is None else slot.star]
    return words, slots


def _slot(inside: str, position: int, classes: Sequence[str], where: str) -> Slot:
    parts = [part.strip() for part in inside.split("|")]
    stars = [index for index, part in enumerate(parts) if part.endswith("*")]
    if len(stars) > 1:
        raise UserError(f"two stars in the slot ({inside})", where=where, remedy="Star the form of the source.")
    forms: list[str] = []
    for part in parts:
        form = part.removesuffix("*").strip() or (forms[-1] if forms else "")
        if not form:
            raise UserError(f"the first form of the slot ({inside}) is empty", where=where)
        forms.append(form)
    derivable = len(classes) == 3 and classes[-1] == "neutral"
    fewest = 2 if derivable else len(classes)
    if not fewest <= len(forms) <= len(classes):
        raise UserError(
            f"the slot ({inside}) has the wrong number of forms",
            where=where,
            found=len(forms),
            expected=f"one for each of {', '.join(classes)}",
        )
    return Slot(position, tuple(forms), stars[0] if stars else None)
