"""One rule for comparing what people write: column names, class names, word lists, keys.

Two texts are the same if their characters are, after white space at both ends is taken off and both are brought into
Unicode's composed normal form (NFC): ``é`` typed as one character and as ``e`` with an accent look alike and are alike.
Case counts, and so do leading zeros and every sign between the ends. Only comparisons use this form: what is stored,
hashed, shown to an encoder or printed stays as it was written.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def compare_key(text: str) -> str:
    """The form in which ``text`` is compared: stripped, NFC."""
    return unicodedata.normalize("NFC", text).strip()


def same_text(one: str, other: str) -> bool:
    """Whether two texts are the same to a reader."""
    return compare_key(one) == compare_key(other)


def first_repeated(texts: Iterable[str]) -> tuple[int, int] | None:
    """Positions of the first two texts that are the same, or None; the pair whose second member comes first."""
    seen: dict[str, int] = {}
    for position, text in enumerate(texts):
        earlier = seen.setdefault(compare_key(text), position)
        if earlier != position:
            return earlier, position
    return None
