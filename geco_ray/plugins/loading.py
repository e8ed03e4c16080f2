"""A file or module of components of one's own: loaded here, and on each of Ray's workers before anything else is."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from geco_ray.errors import UserError
from geco_ray.files.home import expand_home
from geco_ray.plugins.sources import keep_shipped, module_files, module_texts


@dataclass(frozen=True)
class Plugin:
    """A module that registers components.

    Attributes:
        module: its name. texts: relative path to text of it and what it belongs to; empty where it is installed as a
            distribution, as it then must be on every machine.
    """

    module: str
    texts: Mapping[str, str] = field(default_factory=dict)


_LOADED: dict[str, Plugin] = {}


def loaded_plugins() -> tuple[Plugin, ...]:
    """The plug-ins that this process was told to load, in that order."""
    return tuple(_LOADED.values())


def load_plugin(reference: str, folder: Path | None = None) -> Plugin:
    """Import a file (``my_method.py``, ``tools/my_method.py``) or a module (``my_package.my_method``).

    A file inside a package is imported as a module of it. A file's own folder is on the import path from then on, so
    that it finds what lies beside it.

    Args:
        reference: the file or module.
        folder: where a relative path is looked for first, such as a grid's; then in the working folder.

    Raises:
        UserError: there is no such file or module, or importing it raised.
    """
    if reference.endswith(".py") or "/" in reference:
        module = _prepare_file(_find_file(reference, folder))
    else:
        module = reference
    try:
        importlib.import_module(module)
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name in (module, module.partition(".")[0])
        remedy = "Give a file that ends in .py, or a module that Python can import" if missing else "Repair it"
        raise UserError(
            f"the plug-in cannot be loaded: {type(error).__name__}: {error}", where=reference, remedy=remedy
        ) from error
    if module not in _LOADED:
        files = module_files(module)
        installed = any({"site-packages", "dist-packages"} & set(path.parts) for path in files.values())
        _LOADED[module] = Plugin(module, {} if installed else module_texts(module))
    return _LOADED[module]


def _find_file(reference: str, folder: Path | None) -> Path:
    own = expand_home(reference, "plug-in")
    places: list[Path] = [own] if folder is None else [folder / own, own]
    for path in places:
        if path.is_file():
            return path.resolve()
    raise UserError(
        "there is no such file", where=reference, remedy="Give its path from here, or from the grid's folder"
    )


def _prepare_file(path: Path) -> str:
    """Make a file importable; the name of its module.

    Raises:
        UserError: another module of that name is loaded already.
    """
    parts, root = [path.stem], path.parent
    while (root / "__init__.py").is_file():
        parts, root = [root.name, *parts], root.parent
    name = ".".join(parts)
    loaded = sys.modules.get(name)
    file = getattr(loaded, "__file__", None)
    if parts[0] in sys.stdlib_module_names:
        raise UserError(
            f"{parts[0]!r} is the name of a module of Python's own",
            where=str(path),
            remedy="Give the file another name",
        )
    if loaded is not None and (file is None or Path(file).resolve() != path):
        raise UserError(
            f"another module is called {name!r}", where=str(path), found=file, remedy="Give the file another name"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
        importlib.invalidate_caches()
    return name


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules from texts that another process sent."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        stem = fullname.replace(".", "/")
        for name, package in ((f"{stem}/__init__.py", True), (f"{stem}.py", False)):
            if name in self._texts:
                return importlib.util.spec_from_loader(fullname, self, origin=name, is_package=package)
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = str(module.__spec__.origin) if module.__spec__ else ""
        exec(compile(self._texts[name], name, "exec"), module.__dict__)


def _receive(plugins: Sequence[Plugin], data: bytes) -> Any:
    """On a worker: make the plug-ins importable and import them, then read what came with them."""
    for plugin in plugins:
        if plugin.module in _LOADED:
            continue
        if plugin.texts:
            sys.meta_path.insert(0, _Finder(plugin.texts))
            for top in {name.partition("/")[0].removesuffix(".py") for name in plugin.texts}:
                keep_shipped(top, plugin.texts)
        importlib.import_module(plugin.module)
        _LOADED[plugin.module] = plugin
    return pickle.loads(data)


class with_plugins:  # noqa: N801 (a function in all but its pickling)
    """``value`` for another process: unpickled there, it is the value itself, after the plug-ins have been loaded.

    Without plug-ins it is left as it is. The value must be wrapped, since the classes of the options in it are those
    of the plug-ins, and unpickling looks for them.
    """

    def __new__(cls, value: Any) -> Any:
        return super().__new__(cls) if _LOADED else value

    def __init__(self, value: Any) -> None:
        self._value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return _receive, (loaded_plugins(), pickle.dumps(self._value))
