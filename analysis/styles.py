"""How named things are called, ordered, coloured and marked in every table and figure.

Title, order, colour, marker and what a component aims at are those that it was registered with, here or, as the records
say, on the machine that computed. What nobody has said is chosen by the name alone, and comes after the others.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from geco_ray.errors import UserError, simplify
from geco_ray.registry import Entry, Profile, Registry

# Okabe and Ito's colours, which stay apart under the common forms of colour blindness; darkened until text of that
# colour would have a contrast of 4.5 on white.
_SPARE = ("#0072B2", "#C24E00", "#007A5A", "#A8407F", "#9A6A00", "#1F78A8")
_SPARE_MARKERS = ("P", "X", "h", "*", "p", "8")
_VARIANT_MARKERS = ("D", "^", "X", "v", "P", "o", "s")

Lookup = Callable[[str, Path | None], str | None]
Profiles = Callable[[str], Profile | None]
LAST = 1_000_000


@dataclass(frozen=True, slots=True)
class Style:
    """What a name looks like: its place in the order, its colour and marker; hollow where it says it aims elsewhere."""

    rank: int
    colour: str = "#333333"
    marker: str = "o"
    hollow: bool = False


@dataclass(frozen=True)
class Names:
    """The names of one kind, such as the data sets of a benchmark.

    Attributes:
        kind: the parameter of a cell that holds such a name: ``dataset``, ``method``, ...
        registered: the title that this machine knows for a name, or None. The second argument is the folder of the
            user's data, None for the usual places.
        profiles: the profile that this machine knows for a name, or None.
        recorded: name to profile as the records say, for names that are not registered here.
    """

    kind: str
    registered: Lookup
    profiles: Profiles = lambda name: None
    recorded: Mapping[str, Profile] = field(default_factory=dict)

    def profile(self, name: str) -> Profile:
        """What is known of ``name`` beside its title."""
        return self.profiles(name) or self.recorded.get(name) or Profile()

    def style(self, name: str) -> Style:
        """The style of ``name``."""
        known, number = self.profile(name), zlib.crc32(simplify(name).encode())
        colour = known.colour or _SPARE[number % len(_SPARE)]
        marker = known.marker or _SPARE_MARKERS[number // 7 % len(_SPARE_MARKERS)]
        return Style(LAST if known.order is None else known.order, colour, marker, hollow=known.aims is False)

    def in_order(self, names: Iterable[str]) -> list[str]:
        """The distinct ``names`` in the order of the styles; others last, by alphabet."""
        return sorted(set(names), key=lambda name: (self.style(name).rank, name))


def variants(labels: Iterable[tuple[str, str]], looks: Mapping[str, Style]) -> dict[str, Style]:
    """Label to style for pairs of (name, label): the labels of one name get shades and markers of their own.

    The first label of a name keeps its style in ``looks``, so that nothing changes where a name has one setting only.
    """
    styles: dict[str, Style] = {}
    count: dict[str, int] = {}
    for name, label in labels:
        if label not in styles:
            place = count[name] = count.get(name, -1) + 1
            styles[label] = _shade(looks[name], place)
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

    def kind(self, kind: str) -> Names:
        """The names of that kind."""
        (own,) = (known for known in self.names if known.kind == kind)
        return own

    def of(self, kind: str, names: Iterable[str]) -> dict[str, str]:
        """Name to title."""
        own = self.kind(kind)
        return {
            name: own.registered(name, self.data_dir) or self.recorded.get((kind, name)) or name for name in set(names)
        }


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


def registry_profiles(place: str) -> Profiles:
    """Profiles of the registry ``place`` (``module:name``)."""

    def registered(name: str) -> Profile | None:
        try:
            return registered_entry(place, name).profile
        except UserError:
            return None

    return registered


def in_listed_order(names: Callable[[], Sequence[str]]) -> Profiles:
    """Profiles that hold nothing but the place of a name in a list."""

    def place(name: str) -> Profile | None:
        listed = list(names())
        return Profile(order=listed.index(name)) if name in listed else None

    return place


def _shade(own: Style, place: int) -> Style:
    """The ``place``-th variant of a style: darker and lighter in turn, with another marker."""
    if place == 0:
        return own
    target, part = (0, 0.45) if place % 2 else (255, 0.5)
    channels = (int(own.colour[at : at + 2], 16) for at in (1, 3, 5))
    colour = "#" + "".join(f"{round(channel + part * (target - channel)):02X}" for channel in channels)
    others = [marker for marker in _VARIANT_MARKERS if marker != own.marker]
    return replace(own, colour=colour, marker=others[(place - 1) % len(others)])
