"""One registry per concept: a file registers what it defines, and nobody keeps a central list.

A registry belongs to a package folder. The first look-up imports every module of that folder (and what third parties
offer under the entry-point group of the same name), and each module calls :meth:`Registry.register`. Those modules
import torch, captum and the like inside their functions only, so listing names and checking options stays cheap.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import pkgutil
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from geco_ray.errors import UserError, simplify, suggest, unknown_name
from geco_ray.plugins import Origin, load_plugin, origin_of

T = TypeVar("T")


class Options(BaseModel):
    """Base of every component's options: frozen, typed, unknown keys refused, defaults as in the paper."""

    registered_as: ClassVar[str] = ""
    """The name to look a component up by, where its options call it otherwise."""

    # Defaults are validated too: a float option whose default is written 1 must not differ in identity from 1.0.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    def called(self, name: str, title: str) -> tuple[str, str]:
        """Name and title of a component with these options, from those it was registered with."""
        return name, title


class OptionError(UserError):
    """A wrong option of a component; ``key`` is the option's name."""

    key: str = ""


class NoOptions(Options):
    """For a component that has nothing to set."""


@dataclass(frozen=True)
class Profile:
    """What tables and figures need to know of a component beside its title; no part of any identity.

    Attributes:
        order: its place among its kind; those without one come last, by alphabet.
        colour, marker: ``#RRGGBB`` and a marker of matplotlib; without them they are chosen by the name.
        aims: whether it aims at what the benchmark judges (a robust counterfactual, an explanation of the model);
            False for what is there to compare with, None where nobody has said.
        short: a title for narrow tables.
        assumes, certificate: what a robust counterfactual method assumes of the future model, and what it guarantees.
        scope: names of the change families that this assumption is about.
    """

    order: int | None = None
    colour: str | None = None
    marker: str | None = None
    aims: bool | None = None
    short: str = ""
    assumes: str = ""
    certificate: str = ""
    scope: tuple[str, ...] = ()

    def record(self) -> dict[str, object]:
        """What is set, as plain values for a cell's record."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value not in (None, "", ())
        }


@dataclass(frozen=True)
class Entry(Generic[T]):
    """A registered component: ``name`` in files and on the command line, ``title`` in tables and figures.

    ``version`` is raised by hand when results change; ``origin`` is where one from outside comes from, None for ours.
    """

    name: str
    title: str
    target: T
    options: type[Options]
    module: str
    profile: Profile = Profile()
    version: int = 1
    origin: Origin | None = None
    listed: bool = True

    def called_by(self, options: Options) -> Entry[T]:
        """The entry with the name and title that it has with ``options``."""
        name, title = options.called(self.name, self.title)
        return self if name == self.name else replace(self, name=name, title=title)

    @property
    def code(self) -> str:
        """What of the component's code is part of a result's identity; empty for one of ours in its first version."""
        if self.origin is not None:
            return f"{self.version}:{self.origin.source}"
        return str(self.version) if self.version != 1 else ""

    def parse_options(self, given: dict[str, object] | None = None) -> Options:
        """Check ``given`` against the component's options and fill in the defaults.

        Types are strict, as in a grid: ``"20"``, ``20.0`` and ``true`` are no whole numbers.

        Raises:
            OptionError: an unknown key or a value of the wrong type, named with the component.
        """
        try:
            return self.options.model_validate_json(json.dumps(given or {}), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
        except TypeError as error:
            raise OptionError(
                f"an option of {self.name!r} is no plain value ({error})", remedy="Give text or numbers"
            ) from None
        key = ".".join(str(part) for part in first["loc"]) or "options"
        if first["type"] == "extra_forbidden":
            remedy = suggest(key, self.options.model_fields) if self.options.model_fields else "It has none"
            problem = OptionError(f"unknown option {key!r} of {self.name!r}", remedy=remedy.rstrip("."))
        else:
            what = first["msg"].removeprefix("Value error, ")
            problem = OptionError(
                f"option {key!r} of {self.name!r}: {what}", found=first["input"], remedy="Change it, or leave it out"
            )
        problem.key = str(first["loc"][0]) if first["loc"] else ""
        raise problem


class Registry(Generic[T]):
    """Names of one kind (``attribution method``, ``change family``, ...) found in one package folder."""

    def __init__(self, kind: str, package: str, *, only_in_paper: Collection[str] = ()) -> None:
        """``only_in_paper`` are titles that the paper has and this version lacks; no other is suggested for them."""
        self.kind, self.package, self.only_in_paper = kind, package, tuple(only_in_paper)
        self._entries: dict[str, Entry[T]] = {}
        self._loaded = False

    def register(
        self,
        name: str,
        *,
        title: str | None = None,
        options: type[Options] = NoOptions,
        module: str | None = None,
        version: int = 1,
        listed: bool = True,
        profile: Profile | None = None,
    ) -> Callable[[T], T]:
        """Decorator: register the class or function below under ``name``.

        Args:
            profile: order, colour, marker and the like, for tables and figures.
            module: where it is from, for a target that does not know it (one that is neither class nor function).
            version: to be raised when results change and the code of its package does not show it: other data, another
                compiled library. It is part of what identifies a result.
            listed: whether :meth:`names` has it; one that is not stands for many, and is found by its name.

        Raises:
            ValueError: two components share a name or title (compared by letters and digits only).
        """

        def add(target: T) -> T:
            source = module or str(getattr(target, "__module__", "?"))
            entry = Entry(
                name, title or name, target, options, source, profile or Profile(), version, origin_of(source), listed
            )
            for old in self._entries.values():
                same = {simplify(old.name), simplify(old.title)} & {simplify(entry.name), simplify(entry.title)}
                if same and not _reloaded(old, entry):
                    raise ValueError(f"{self.kind} {name!r} is registered by {old.module} and {entry.module}")
            self._entries[name] = entry
            return target

        return add

    def names(self) -> list[str]:
        """All names, sorted."""
        self._load()
        return sorted(name for name, entry in self._entries.items() if entry.listed)

    def entries(self) -> list[Entry[T]]:
        """All entries, sorted by name."""
        return [self._entries[name] for name in self.names()]

    def get(self, name: str, *, where: str | None = None, folder: Path | None = None) -> Entry[T]:
        """The entry of that name or title; case, blanks, ``-`` and ``_`` do not matter.

        ``my_method.py:nearest`` and ``my_package.my_method:nearest`` name one in a file or module, which is loaded (see
        :func:`geco_ray.plugins.load_plugin`; ``folder`` is where a relative path is looked for first).

        Raises:
            UserError: no such name, with the closest ones; a file or module that cannot be loaded.
        """
        self._load()
        if ":" in name:
            return self._from_outside(name, where, folder)
        if name in self._entries:
            return self._entries[name]
        form = simplify(name)
        for entry in self._entries.values():
            if form in (simplify(entry.name), simplify(entry.title)):
                return entry
        for title in self.only_in_paper:
            if form == simplify(title):
                known = f"Known: {', '.join(self.names())}."
                raise UserError(
                    f"{self.kind} {title!r} is in the paper, not in this version", where=where, remedy=known
                )
        raise unknown_name(self.kind, name, self.names(), where=where)

    def _from_outside(self, reference: str, where: str | None, folder: Path | None) -> Entry[T]:
        source, _, name = reference.rpartition(":")
        try:
            module = load_plugin(source, folder).module
        except UserError as error:
            raise error.at(where) if where else error from None
        own = [entry for entry in self._entries.values() if entry.module == module]
        for entry in own:
            written = getattr(entry.target, "__name__", entry.name)
            if simplify(name) in {simplify(entry.name), simplify(entry.title), simplify(written)}:
                return entry
        if callable(getattr(sys.modules[module], name, None)):
            remedy = f'Put the decorator register("{name}") of this kind\'s registry on it'
            raise UserError(f"{name!r} is not registered as a {self.kind}", where=where or source, remedy=remedy)
        known = [entry.name for entry in own]
        remedy = suggest(name, known) if known else f"Register a {self.kind} there, see docs/extending.md"
        raise UserError(f"{source} has no {self.kind} {name!r}", where=where, remedy=remedy.rstrip("."))

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True  # first, since a module of the folder may look up a sibling while it is imported
        try:
            folder = importlib.import_module(self.package)
            for module in sorted(info.name for info in pkgutil.iter_modules(folder.__path__)):
                importlib.import_module(f"{self.package}.{module}")
            for point in importlib.metadata.entry_points(group=self.package):
                self._load_plugin(point)
        except BaseException:
            self._loaded = False  # or the next look-up would see half of the names and call the rest unknown
            raise

    def _load_plugin(self, point: importlib.metadata.EntryPoint) -> None:
        try:
            point.load()
        except Exception as error:
            owner = point.dist.name if point.dist else point.value
            raise UserError(
                f"the plug-in {point.name!r} ({self.kind}) cannot be loaded: {type(error).__name__}: {error}",
                where=point.value,
                remedy=f"Repair it, or pip uninstall {owner}",
            ) from error


def _reloaded(old: Entry[Any], new: Entry[Any]) -> bool:
    """Whether ``new`` is ``old`` from a module that was imported again."""
    return (old.module, old.name, getattr(old.target, "__qualname__", "")) == (
        new.module,
        new.name,
        getattr(new.target, "__qualname__", None),
    )
