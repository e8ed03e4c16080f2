"""Looks up what the axes of a grid name. It knows the grid's text, so a wrong name is refused with file and line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from geco_ray.errors import UserError, unknown_name
from geco_ray.plan.axes import ComponentChoice, refuse_duplicates
from geco_ray.plan.gridfile import GridText, KeyPath
from geco_ray.registry import Entry, OptionError, Options, Registry

T = TypeVar("T")
Chosen = tuple[Entry[Any], Options]


def _beside(options: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The options with a relative path ``file`` taken from the grid's folder, where there is such a file."""
    file = options.get("file")
    if isinstance(file, str) and not Path(file).is_absolute() and (folder / file).is_file():
        return options | {"file": str(folder / file)}
    return options


@dataclass(frozen=True)
class Resolver:
    """What an expansion asks about the axes of its benchmark.

    Attributes:
        benchmark: its name, which is its key in the grid. text: the grid as it was written. data_dir: where the user's
            data lies, None for the cache.
    """

    benchmark: str
    text: GridText
    data_dir: Path | None = None

    def place(self, axis: str, number: int | None = None, option: str | None = None) -> str:
        """File, line and axis of a value of an axis (the ``number``-th of a list), or of one option of it."""
        path: KeyPath = (self.benchmark, axis)
        if option is not None and (*path, option) in self.text.places:  # the axis has one value and is no list
            path = (*path, option)
        else:
            path = (*path, *(part for part in (number, option) if part is not None))
        return f"{self.text.place(path)}: {self.benchmark}.{axis}"

    def each(self, axis: str, names: Iterable[str], find: Callable[[str], T]) -> list[T]:
        """What ``find`` gives for each name of an axis.

        Raises:
            UserError: ``find``'s own, with the name's place.
        """
        found = []
        for number, name in enumerate(names):
            try:
                found.append(find(name))
            except UserError as error:
                raise error.at(self.place(axis, number)) from None
        return found

    def check_names(self, axis: str, names: Iterable[str], kind: str, known: list[str]) -> None:
        """Refuse a name that is not in ``known``.

        Raises:
            UserError: unknown ``kind``, with place and the closest names.
        """
        for number, name in enumerate(names):
            if name not in known:
                raise unknown_name(kind, name, known, where=self.place(axis, number))

    def components(self, axis: str, choices: Iterable[ComponentChoice], registry: Registry[Any]) -> list[Chosen]:
        """The entry of each component of an axis, with its options complete.

        Raises:
            UserError: an unknown name or option, an option of the wrong type, or a component that appears twice under
                two spellings.
        """
        chosen = []
        for number, choice in enumerate(choices):
            folder = Path(self.text.name).parent  # a file of one's own may lie beside the grid
            entry = registry.get(choice.name, where=self.place(axis, number), folder=folder)
            try:
                options = entry.parse_options(_beside(choice.options, folder))
                own = entry.called_by(options)
                if own is not entry and own.name in registry.names():
                    remedy = f"Give it another name than {own.name}"
                    raise OptionError(f"{own.name!r} is the name of another {registry.kind}", remedy=remedy)
                chosen.append((own, options))
            except OptionError as error:
                raise error.at(self.place(axis, number, error.key)) from None
        refuse_duplicates(chosen, (self.benchmark, axis), self.text, lambda pair: str(pair[0].name))
        return chosen
