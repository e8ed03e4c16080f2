"""Reading a grid's YAML so that every complaint can name the file and the line.

PyYAML's composer gives nodes with positions; they become plain values here, with a map from key paths to lines.
A key that stands twice is an error (YAML loaders keep the last one in silence), and so is a number that YAML 1.1
takes for text, such as ``1e-3``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from geco_ray.errors import UserError, suggest

KeyPath = tuple[str | int, ...]
_NUMBER_AS_TEXT = re.compile(r"^[+-]?\d+(\.\d*)?[eE][+-]?\d+$")


@dataclass
class GridText:
    """The values of a grid file and where each stood."""

    name: str
    values: dict[str, Any]
    places: dict[KeyPath, str] = field(default_factory=dict)

    def place(self, path: KeyPath) -> str:
        """Where ``path``, or the closest thing around it, was given: a file and line, or an override."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, self.name)


def find_grid(name: str) -> Path:
    """The file of a grid: a path as given, else ``./grids/NAME.yaml``, else the grid that the package ships.

    Raises:
        UserError: no such grid, with the closest names.
    """
    if name.endswith((".yaml", ".yml")) or "/" in name:
        path = Path(name)
        if path.is_file():
            return path
        raise UserError(f"there is no grid file {name!r}", remedy="Give the path of a YAML file, or a grid's name")
    folders = [Path("grids"), *_shipped_folders()]
    for folder in folders:
        path = folder / f"{name}.yaml"
        if path.is_file():
            return path
    known = sorted({path.stem for folder in folders if folder.is_dir() for path in folder.glob("*.yaml")})
    raise UserError(f"unknown grid {name!r}", where="./grids and the shipped grids", remedy=suggest(name, known))


def _shipped_folders() -> list[Path]:
    package = Path(__file__).parent
    return [package / "grids", package.parent / "grids"]  # in a wheel, and in a checkout


def read_grid(path: Path) -> GridText:
    """Parse one grid file.

    Raises:
        UserError: not UTF-8, not YAML, not a mapping, a duplicate key, an anchor; with file and line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the grid ({error})", where=str(path)) from error
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"not valid YAML: {error.problem}", where=f"{path}:{line}") from error
    except yaml.YAMLError as error:
        raise UserError(f"not valid YAML: {error}", where=str(path)) from error
    if not isinstance(node, yaml.MappingNode):
        raise UserError("a grid is a mapping of keys", where=str(path), expected="at least one of geco:, cfe:")
    grid = GridText(str(path), {})
    grid.values = _value(node, (), str(path), grid.places)
    return grid


def _value(node: yaml.Node, path: KeyPath, file: str, places: dict[KeyPath, str]) -> Any:
    where = f"{file}:{node.start_mark.line + 1}"
    places.setdefault(path, where)
    if isinstance(node, yaml.MappingNode):
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            at = f"{file}:{key_node.start_mark.line + 1}"
            if key in result:
                raise UserError(f"the key {key!r} is given twice", where=at, remedy="Keep one of them")
            places[(*path, key)] = at
            result[key] = _value(value_node, (*path, key), file, places)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, i), file, places) for i, item in enumerate(node.value)]
    value = yaml.SafeLoader("").construct_object(node)
    return _refuse_number_as_text(value, where)


def _refuse_number_as_text(value: Any, where: str) -> Any:
    if isinstance(value, str) and _NUMBER_AS_TEXT.match(value):
        raise UserError(f"YAML reads {value!r} as text", where=where, remedy=f"Write {float(value):.1e}")
    return value


def apply_override(grid: GridText, text: str) -> None:
    """Set one key from ``key.path=value`` (the value is YAML), in place.

    Raises:
        UserError: no ``=``, an empty key, or a value that is not YAML.
    """
    key, separator, value_text = text.partition("=")
    where = f"override {text!r}"
    parts = tuple(part.strip() for part in key.split("."))
    if not separator or not all(parts):
        raise UserError("an override is KEY=VALUE", where=where, expected="such as geco.seeds=[0,1] or only=cfe")
    try:
        value = yaml.safe_load(value_text)
    except yaml.YAMLError as error:
        raise UserError(f"the value is not YAML ({error})", where=where) from error
    target = grid.values
    for depth, part in enumerate(parts[:-1]):
        inner = target.setdefault(part, {})
        if not isinstance(inner, dict):
            raise UserError(f"{'.'.join(parts[: depth + 1])} has no keys below it", where=where)
        target = inner
    target[parts[-1]] = _refuse_number_as_text(value, where)
    for path in [path for path in grid.places if path[: len(parts)] == parts]:
        del grid.places[path]
    grid.places[parts] = where
