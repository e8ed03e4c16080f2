"""An attribution as a line of characters, one a word: the sign and 44 steps of its part of the line's largest."""

from __future__ import annotations

from collections.abc import Sequence

STEPS = 44
# All printable characters of ASCII that JSON and HTML take as they are, but the space; the 45th stands for zero.
ALPHABET = "".join(chr(code) for code in range(33, 127) if chr(code) not in '"\\<>&')


def encoded(values: Sequence[float]) -> str:
    """A character for each value; an attribution of zeros alone is all zeros."""
    top = max((abs(value) for value in values), default=0.0)
    return "".join(ALPHABET[STEPS + (round(STEPS * value / top) if top > 0 else 0)] for value in values)
