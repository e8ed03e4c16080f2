"""How named things are called, ordered, coloured and marked in every table and figure.

Order, colour and marker are fixed here for the papers' names; the title is the one that was registered. A name without
a style, such as a third party's method, comes after the others; its colour depends on its name alone.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from geco_ray.errors import UserError, simplify
from geco_ray.registry import Entry, Registry

# Okabe and Ito's colours, which stay apart under the common forms of colour blindness; greys mark baselines.
_SPARE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_SPARE_MARKERS = ("P", "X", "h", "*", "p", "8")
_VARIANT_MARKERS = ("D", "^", "X", "v", "P", "o", "s")

Lookup = Callable[[str, Path | None], str | None]


@dataclass(frozen=True, slots=True)
class Style:
    """What a name looks like: its place in the order, its colour and marker."""

    rank: int
    colour: str = "#333333"
    marker: str = "o"
    hollow: bool = False


@dataclass(frozen=True)
class Names:
    """The names of one kind, such as the data sets of a benchmark.

    Attributes:
        kind: the parameter of a cell that holds such a name: ``dataset``, ``method``, ...
        styles: styles by name, see :func:`ranked`.
        registered: the title that this machine knows for a name, or None. The second argument is the folder of the
            user's data, None for the usual places.
    """

    kind: str
    styles: Mapping[str, Style]
    registered: Lookup

    def style(self, name: str) -> Style:
        """The style of ``name``."""
        known = self.styles.get(simplify(name))
        if known is not None:
            return known
        number = zlib.crc32(simplify(name).encode())
        colour, marker = _SPARE[number % len(_SPARE)], _SPARE_MARKERS[number // 7 % len(_SPARE_MARKERS)]
        return Style(len(self.styles), colour, marker, hollow=True)

    def in_order(self, names: Iterable[str]) -> list[str]:
        """The distinct ``names`` in the order of the styles; others last, by alphabet."""
        return sorted(set(names), key=lambda name: (self.style(name).rank, name))

    def variants(self, labels: Iterable[tuple[str, str]]) -> dict[str, Style]:
        """Label to style for pairs of (name, label): the labels of one name get shades and markers of their own.

        The first label of a name keeps its style, so that nothing changes where a name has one setting only.
        """
        styles: dict[str, Style] = {}
        count: dict[str, int] = {}
        for name, label in labels:
            if label not in styles:
                place = count[name] = count.get(name, -1) + 1
                styles[label] = _shade(self.style(name), place)
        return styles


@dataclass(frozen=True)
class Titles:
    """What things are called: as registered here, else as the records of the run say, else by their names.

    Attributes:
        names: the kinds of a benchmark.
        recorded: (kind, name) to the title that the machine which computed it knew.
        data_dir: the folder of the user's data; None for the usual places.
    """

    names: Sequence[Names]
    recorded: Mapping[tuple[str, str], str] = field(default_factory=dict)
    data_dir: Path | None = None

    def of(self, kind: str, names: Iterable[str]) -> dict[str, str]:
        """Name to title."""
        (own,) = (known for known in self.names if known.kind == kind)
        return {
            name: own.registered(name, self.data_dir) or self.recorded.get((kind, name)) or name for name in set(names)
        }


def ranked(styles: Mapping[str, tuple[str, str, bool]] | Sequence[str]) -> dict[str, Style]:
    """Styles from names in order, or from names with their colour, marker and whether the marker is hollow."""
    if isinstance(styles, Mapping):
        return {simplify(name): Style(rank, *look) for rank, (name, look) in enumerate(styles.items())}
    return {simplify(name): Style(rank) for rank, name in enumerate(styles)}


def registered_entry(place: str, name: str) -> Entry[Any]:
    """The entry of ``name`` in the registry ``place`` (``module:name``), which is imported when it is first asked.

    Raises:
        UserError: it is not registered on this machine, or a plug-in is broken.
    """
    module, _, attribute = place.partition(":")
    registry: Registry[Any] = getattr(importlib.import_module(module), attribute)
    return registry.get(name)


def registry_titles(place: str) -> Lookup:
    """Titles of the registry ``place`` (``module:name``)."""

    def registered(name: str, data_dir: Path | None) -> str | None:
        try:
            return registered_entry(place, name).title
        except UserError:  # not installed here (any more), or broken: a report is readable without it
            return None

    return registered


def _shade(own: Style, place: int) -> Style:
    """The ``place``-th variant of a style: darker and lighter in turn, with another marker."""
    if place == 0:
        return own
    target, part = (0, 0.45) if place % 2 else (255, 0.5)
    channels = (int(own.colour[at : at + 2], 16) for at in (1, 3, 5))
    colour = "#" + "".join(f"{round(channel + part * (target - channel)):02X}" for channel in channels)
    others = [marker for marker in _VARIANT_MARKERS if marker != own.marker]
    return replace(own, colour=colour, marker=others[(place - 1) % len(others)])
