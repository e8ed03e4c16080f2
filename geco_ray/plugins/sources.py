"""What identifies the code of a component from outside: a hash of the syntax trees of its package.

Comments, blank lines, line breaks and docstrings are not in it; a changed number in a helper module is. A module that
belongs to no package counts with the modules beside it that it imports.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType

OURS = frozenset({"geco_ray", "analysis"})
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_SHIPPED: dict[str, dict[str, str]] = {}


@dataclass(frozen=True)
class Origin:
    """Where a component comes from.

    Attributes:
        top: its package, or its module where it has none. source: hash of the syntax trees, 16 hex digits.
    """

    top: str
    source: str

    def facts(self) -> dict[str, str]:
        """For a record: the hash, and the distribution with its version where the package was installed."""
        return {"package": self.top, "source": self.source} | _distribution(self.top)


def origin_of(module: str) -> Origin | None:
    """The origin of a component that ``module`` defines; None for one of geco_ray's own."""
    top = module.partition(".")[0]
    if top in OURS:
        return None
    return Origin(top, tree_hash(module_texts(module)))


def module_texts(module: str) -> dict[str, str]:
    """Relative path to text of every module that counts for ``module``; empty where nothing can be read."""
    top = module.partition(".")[0]
    if top in _SHIPPED:
        return _SHIPPED[top]
    return {name: _text(path) for name, path in module_files(module).items()}


def keep_shipped(top: str, texts: Mapping[str, str]) -> None:
    """Note the texts of a package that came from another machine and lies in no file here."""
    _SHIPPED[top] = dict(texts)


def module_files(module: str) -> dict[str, Path]:
    """Relative path to file of every module that counts for ``module``."""
    top = module.partition(".")[0]
    loaded = sys.modules.get(top)
    folders = [Path(folder) for folder in getattr(loaded, "__path__", ())]
    if folders:
        return {
            f"{top}/{path.relative_to(folder).as_posix()}": path
            for folder in folders
            for path in sorted(folder.rglob("*.py"))
        }
    file = _file_of(sys.modules.get(module)) or _file_of(loaded)
    if file is None:
        return {}
    return {path.relative_to(file.parent).as_posix(): path for path in sorted(_beside(file))}


def tree_hash(texts: Mapping[str, str]) -> str:
    """16 hex digits over the names and normalized syntax trees of some modules.

    Args:
        texts: relative path to source text. One that is no Python of this version counts byte by byte.
    """
    digest = hashlib.sha256()
    for name, text in sorted(texts.items()):
        digest.update(f"{name}\n{_tree_text(text)}\n".encode())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=4096)
def _tree_text(text: str) -> str:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return text
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return repr(_plain(tree))


def _plain(node: object) -> object:
    """A tree as nested tuples, without what is empty: Python's versions differ in which empty fields they write."""
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields if name not in ("type_comment", "kind"))
        return type(node).__name__, *((name, _plain(value)) for name, value in fields if value not in (None, []))
    if isinstance(node, list):
        return [_plain(item) for item in node]
    return type(node).__name__, repr(node)


def _file_of(module: ModuleType | None) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if file and Path(file).suffix == ".py" else None


def _beside(file: Path) -> set[Path]:
    """``file`` and what it imports, directly or by others, from its own folder."""
    found, waiting = set[Path](), [file]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for name in _imported(_text(path)):
            sibling, package = file.parent / f"{name}.py", file.parent / name
            if sibling.is_file():
                waiting.append(sibling)
            elif (package / "__init__.py").is_file():
                waiting.extend(package.rglob("*.py"))
    return found


def _imported(text: str) -> Iterator[str]:
    """The first words of the names that a module imports."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


@cache
def _distribution(top: str) -> dict[str, str]:
    names = importlib.metadata.packages_distributions().get(top, [])
    return {"distribution": names[0], "version": importlib.metadata.version(names[0])} if names else {}
