"""Random streams of requests that share what they would draw alike.

Under the paper's protocol RobX restarts one stream for every request. Requests with the same past then draw the same
numbers; they are drawn (and turned into what is needed) once. Nothing a request sees depends on who shares with it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class Memo:
    """The latest draws of streams that start alike, at most ``capacity`` of them."""

    def __init__(self, capacity: int = 8) -> None:
        self.capacity = capacity
        self.entries: OrderedDict[Hashable, tuple[Any, Any, int]] = OrderedDict()
        self.positions = 0

    def store(self, key: Hashable, value: object, state: object) -> int:
        """Keep a draw and the generator's state after it; the id of the position that it leads to."""
        self.positions += 1
        self.entries[key] = (value, state, self.positions)
        while len(self.entries) > self.capacity:
            self.entries.popitem(last=False)
        return self.positions


class Stream:
    """One request's stream.

    Args:
        generator: its own generator; all streams of one ``memo`` must start in the same state.
        memo: shared by the streams that start alike, or ``None`` for a stream of its own.
    """

    def __init__(self, generator: np.random.Generator, memo: Memo | None = None) -> None:
        self._generator, self._memo, self.position = generator, memo, 0

    def take(self, label: Hashable, make: Callable[[np.random.Generator], T]) -> T:
        """What ``make`` builds from the next numbers; ``label`` must say all that ``make`` depends on.

        The value may be shared with other requests and must not be changed.
        """
        if self._memo is None:
            return make(self._generator)
        key = (self.position, label)
        found = self._memo.entries.get(key)
        if found is None:
            value = make(self._generator)
            self.position = self._memo.store(key, value, self._generator.bit_generator.state)
            return value
        self._memo.entries.move_to_end(key)
        value, self._generator.bit_generator.state, self.position = found
        return value
