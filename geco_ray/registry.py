"""One registry per concept: a file registers what it defines, and nobody keeps a central list.

A registry belongs to a package folder. The first look-up imports every module of that folder (and what third parties
offer under the entry-point group of the same name), and each module calls :meth:`Registry.register`. Those modules
import torch, captum and the like inside their functions only, so listing names and checking options stays cheap.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from geco_ray.errors import UserError, simplify, suggest, unknown_name

T = TypeVar("T")


class Options(BaseModel):
    """Base of every component's options: frozen, typed, unknown keys refused, defaults as in the paper."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class NoOptions(Options):
    """For a component that has nothing to set."""


@dataclass(frozen=True)
class Entry(Generic[T]):
    """A registered component: ``name`` in files and on the command line, ``title`` in tables and figures."""

    name: str
    title: str
    target: T
    options: type[Options]
    module: str

    def parse_options(self, given: dict[str, object] | None = None) -> Options:
        """Check ``given`` against the component's options and fill in the defaults.

        Raises:
            UserError: an unknown key or a value of the wrong type, named with the component.
        """
        try:
            return self.options.model_validate(given or {})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(str(part) for part in first["loc"]) or "options"
            if first["type"] == "extra_forbidden":
                remedy = suggest(key, self.options.model_fields) if self.options.model_fields else "It has none."
                raise UserError(f"unknown option {key!r} of {self.name!r}", remedy=remedy) from None
            raise UserError(f"option {key!r} of {self.name!r}: {first['msg']}", found=first["input"]) from None


class Registry(Generic[T]):
    """Names of one kind (``attribution method``, ``change family``, ...) found in one package folder."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind, self.package = kind, package
        self._entries: dict[str, Entry[T]] = {}
        self._loaded = False

    def register(self, name: str, *, title: str | None = None, options: type[Options] = NoOptions) -> Callable[[T], T]:
        """Decorator: register the class or function below under ``name``.

        Raises:
            ValueError: two files register the same name (compared by letters and digits only).
        """

        def add(target: T) -> T:
            entry = Entry(name, title or name, target, options, getattr(target, "__module__", "?"))
            known = {form: old for old in self._entries.values() for form in (simplify(old.name), simplify(old.title))}
            for form in (simplify(entry.name), simplify(entry.title)):
                if form in known and known[form].module != entry.module:
                    raise ValueError(f"{self.kind} {name!r} is registered by {known[form].module} and {entry.module}")
            self._entries[name] = entry
            return target

        return add

    def names(self) -> list[str]:
        """All names, sorted."""
        self._load()
        return sorted(self._entries)

    def entries(self) -> list[Entry[T]]:
        """All entries, sorted by name."""
        return [self._entries[name] for name in self.names()]

    def get(self, name: str, *, where: str | None = None) -> Entry[T]:
        """The entry of that name or title; case, blanks, ``-`` and ``_`` do not matter.

        Raises:
            UserError: no such name, with the closest ones.
        """
        self._load()
        if name in self._entries:
            return self._entries[name]
        form = simplify(name)
        for entry in self._entries.values():
            if form in (simplify(entry.name), simplify(entry.title)):
                return entry
        raise unknown_name(self.kind, name, self.names(), where=where)

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True  # first, since a module of the folder may look up a sibling while it is imported
        folder = importlib.import_module(self.package)
        for module in sorted(info.name for info in pkgutil.iter_modules(folder.__path__)):
            importlib.import_module(f"{self.package}.{module}")
        for point in importlib.metadata.entry_points(group=self.package):
            point.load()
