"""Which rows a page shows where it has no room for all: every k-th, with the smallest k that fits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
_PROBE = 40


def compact(value: Any) -> str:
    """``value`` as JSON without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def every_kth(keys: Sequence[T], build: Callable[[Sequence[T]], Any], room: int) -> tuple[int, Any]:
    """The smallest step k at which what ``build`` makes of every k-th key, the first included, has at most ``room``
    bytes of JSON, and what it makes; an estimate from a few keys saves building all.

    ``build`` of more keys must not be smaller. Where even one key has no room, that one is taken.
    """
    step = 1
    if len(keys) > _PROBE:
        few = keys[:: len(keys) // _PROBE]
        step = max(1, int(0.9 * size_of(build(few)) / len(few) * len(keys) / room))
    while True:
        made = build(keys[::step])
        if step >= len(keys) or (size := size_of(made)) <= room:
            return step, made
        step = max(step + 1, int(step * size / room))


def size_of(value: Any) -> int:
    """Bytes of ``value`` as JSON."""
    return len(compact(value).encode())


def ordinal(step: int) -> str:
    """``every``, ``every second``, ``every 7th``: how often a row is shown."""
    names = {1: "every", 2: "every second", 3: "every third"}
    if step in names:
        return names[step]
    end = "th" if 10 <= step % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(step % 10, "th")
    return f"every {step:,}{end}"
