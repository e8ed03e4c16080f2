"""Text of users for consoles, figures and pages: what would steer the output instead of being seen is made visible."""

from __future__ import annotations

import re

# Control characters but tab and line feed, line separators, signs that turn a line's direction, what is no character.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def visible(text: str) -> str:
    """``text`` with every character that would steer a terminal or a page written as ``\\uXXXX``, as JSON does."""
    return _STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def escaped(text: str) -> str:
    """``text`` in ASCII, every other character as JSON writes it, so that escaped JSON stays JSON."""
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True))
