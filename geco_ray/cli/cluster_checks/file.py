"""A cluster file with the line of every key, and what a check finds in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from geco_ray.errors import UserError
from geco_ray.files.yaml_lines import KeyPath, Strictness, decode_text, read_yaml


@dataclass(frozen=True)
class Finding:
    """One fault (``error``: it will not work) or one thing to do before ``ray up`` (``hint``)."""

    level: Literal["error", "hint"]
    key: str
    line: int | None
    what: str
    remedy: str = ""


@dataclass(frozen=True, eq=False)
class ClusterFile:
    """The values of a cluster file and the line of every key."""

    name: str
    values: dict[str, Any]
    lines: dict[KeyPath, int]

    def error(self, keys: KeyPath, what: str, remedy: str = "") -> Finding:
        """A fault at a key."""
        return Finding("error", _dotted(keys), self._line(keys), what, remedy)

    def hint(self, keys: KeyPath, what: str, remedy: str = "") -> Finding:
        """A thing to do, at a key."""
        return Finding("hint", _dotted(keys), self._line(keys), what, remedy)

    def table(self, *keys: str) -> dict[str, Any]:
        """The mapping at a key; empty where there is none, since Ray's schema tells of wrong types."""
        value: Any = self.values
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    def node_types(self) -> list[str]:
        """The names of the kinds of machine."""
        return [str(name) for name in self.table("available_node_types")]

    def _line(self, keys: KeyPath) -> int | None:
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys)


def _dotted(keys: KeyPath) -> str:
    return ".".join(map(str, keys))


def read_cluster(path: Path) -> ClusterFile:
    """Read a cluster file.

    Raises:
        UserError: it cannot be read, is not YAML, holds a key twice, or is no mapping.
    """
    try:
        text = decode_text(path.read_bytes(), str(path))
    except OSError as error:
        raise UserError(f"the cluster file cannot be read: {error}", where=str(path)) from None
    document = read_yaml(text, lambda line: f"{path}:{line}", Strictness("cluster files", "any"))
    if not isinstance(document.value, dict):
        raise UserError("a cluster file is a mapping of keys to values", where=str(path))
    return ClusterFile(str(path), document.value, document.lines)
