"""What a benchmark reads that is not in the package: a table, a task, an encoder; where it lies, or how to get it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Asset:
    """One thing that a benchmark reads.

    Attributes:
        name: as in a grid.
        kind: what it is, in one word: ``data set`` or ``encoder``.
        found: where it lies, or None where it is missing.
        get: the command that gets it, where it is missing.
        fetched: whether a run that needs it downloads it by itself.
        packaged: whether it is part of an installed package.
    """

    name: str
    kind: str
    found: str | None
    get: str | None = None
    fetched: bool = False
    packaged: bool = False

    def lack(self) -> str | None:
        """One sentence with the command that gets it, where it is missing."""
        if self.found is not None:
            return None
        how = "a run downloads it; beforehand" if self.fetched else "is missing"
        return f"{self.name}: {how}: {self.get}"
