"""Reading a grid's YAML so that every complaint can name the file and the line.

PyYAML's composer gives nodes with positions; they become plain values here, with a map from key paths to lines.
What YAML would change in silence is refused: a key that stands twice (loaders keep the last one), a number that YAML
1.1 takes for text (``1e-3``) or for another number (``010`` is 8, ``1:30`` is 90), anchors, aliases and tags.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from geco_ray.errors import UserError, suggest

KeyPath = tuple[str | int, ...]
_NUMBER_AS_TEXT = re.compile(r"^[+-]?(\d+(\.\d*)?|\.\d+)[eE][+-]?\d+$")
_PLAIN_NUMBER = re.compile(r"^[+-]?(0|[1-9]\d{0,99}|\d+\.\d*([eE][+-]\d+)?|\.\d+([eE][+-]\d+)?|\.(inf|nan))$", re.I)
_DEEPEST = 20
_LONGEST_SHOWN = 80
_TAG = "tag:yaml.org,2002:"


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
    if is_grid_path(name):
        if _is_file(Path(name)):
            return Path(name)
        raise UserError(f"there is no grid file {name!r}", remedy="Give the path of a YAML file, or a grid's name")
    folders = grid_folders()
    for folder in folders:
        if _is_file(folder / f"{name}.yaml"):
            return folder / f"{name}.yaml"
    remedy = suggest(name, grid_names())
    raise UserError(f"unknown grid {name!r}", where="./grids and the shipped grids", remedy=remedy)


def is_grid_path(name: str) -> bool:
    """Whether a grid is given as a path, and not by name."""
    return name.endswith((".yaml", ".yml")) or "/" in name


def grid_names() -> list[str]:
    """Every grid that can be given by name, sorted."""
    return sorted({path.stem for folder in grid_folders() if folder.is_dir() for path in folder.glob("*.yaml")})


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, a folder that may not be read
        return False


def grid_folders() -> list[Path]:
    """Where grids are looked up by name, in this order."""
    return [Path("grids"), *_shipped_folders()]


def _shipped_folders() -> list[Path]:
    package = Path(__file__).parents[1]
    return [package / "grids", package.parent / "grids"]  # in a wheel, and in a checkout


def read_grid(path: Path) -> GridText:
    """Parse one grid file.

    Raises:
        UserError: not UTF-8, not YAML, not a mapping, a duplicate key, an anchor; with file and line.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read the grid ({error.strerror})", where=str(path), remedy="Check the file") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UserError("not UTF-8 text", where=f"{path}:{line}", remedy="Save the file as UTF-8") from error
    grid = GridText(str(path), {})
    values = _parse(text, lambda line: f"{path}:{line}", (), grid.places)
    if values is None:
        remedy = "Give it the axes of a benchmark; docs/grids.md has an example"
        raise UserError("the grid file is empty", where=str(path), remedy=remedy)
    if not isinstance(values, dict):
        raise UserError(
            "a grid is a mapping of keys",
            where=f"{path}:1",
            found=type(values).__name__,
            expected="name:, description:, and at least one benchmark with its axes",
            remedy="See the grids that `geco-ray ls grids` lists",
        )
    grid.values = values
    return grid


def apply_override(grid: GridText, text: str) -> None:
    """Set one key from ``key.path=value`` (the value is YAML), in place.

    Raises:
        UserError: no ``=``, an empty key or value, or a value that is not YAML.
    """
    key, separator, value_text = text.partition("=")
    where = f"override {text!r}"
    parts = tuple(part.strip() for part in key.split("."))
    if not separator or not all(parts) or not value_text.strip():
        raise UserError("an override is KEY=VALUE", where=where, remedy="Write it as geco.seeds=[0,1] or only=cfe")
    places: dict[KeyPath, str] = {}
    value = _parse(value_text, lambda _: where, parts, places)
    target = grid.values
    for depth, part in enumerate(parts[:-1]):
        inner = target.setdefault(part, {})
        if not isinstance(inner, dict):
            raise UserError(
                f"{'.'.join(parts[: depth + 1])} has no keys below it", where=where, remedy="Set it as a whole"
            )
        grid.places.setdefault(parts[: depth + 1], where)
        target = inner
    target[parts[-1]] = value
    for path in [path for path in grid.places if path[: len(parts)] == parts]:
        del grid.places[path]
    grid.places |= {parts: where} | places


def _parse(text: str, place: Callable[[int], str], path: KeyPath, places: dict[KeyPath, str]) -> Any:
    """The value of one YAML text that stands at ``path``; ``place`` tells where a line of it is."""
    try:
        _refuse_fancy(text, place)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        # For a quote left open the fault is where it began; the scanner notices it far below.
        mark = (isinstance(error, yaml.scanner.ScannerError) and error.context_mark) or error.problem_mark
        line = mark.line + 1 if mark else 1
        what = " ".join(str(part) for part in (error.context, error.problem) if part)
        raise UserError(f"not valid YAML: {what}", where=place(line), remedy=_yaml_remedy(what)) from error
    except yaml.YAMLError as error:
        what = " ".join(str(error).split())
        raise UserError(f"not valid YAML: {what}", where=place(1), remedy="Remove the control characters") from error
    return None if node is None else _value(node, path, place, places)


def _yaml_remedy(what: str) -> str:
    return "Indent by blanks, not tabs" if "'\\t'" in what else "Check indentation, brackets, quotes and colons there"


def _refuse_fancy(text: str, place: Callable[[int], str]) -> None:
    """Refuse anchors, aliases, tags and great depth before the composer follows them (an alias may hold itself)."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        at = place(event.start_mark.line + 1) if event.start_mark else place(1)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise UserError(
                f"grids have no anchors and aliases, {getattr(event, 'anchor', '')!r} is one",
                where=at,
                remedy="Write the value out (and quote a text that begins with & or *)",
            )
        if tag := getattr(event, "tag", None):
            raise UserError(f"grids have no YAML tags, {tag!r} is one", where=at, remedy="Leave the tag out")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise UserError(f"nested more than {_DEEPEST} deep", where=at, remedy="Look for a bracket left open")


def _value(node: yaml.Node, path: KeyPath, place: Callable[[int], str], places: dict[KeyPath, str]) -> Any:
    places.setdefault(path, place(node.start_mark.line + 1))
    if isinstance(node, yaml.MappingNode):
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            at = place(key_node.start_mark.line + 1)
            if not isinstance(key_node, yaml.ScalarNode):
                raise UserError("a key is a word, not a list or mapping", where=at, remedy="Look for a missing quote")
            key = str(key_node.value)
            if key in result:
                raise UserError(f"the key {key!r} is given twice", where=at, remedy="Keep one of them")
            places[(*path, key)] = at
            result[key] = _value(value_node, (*path, key), place, places)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, i), place, places) for i, item in enumerate(node.value)]
    key = ".".join(map(str, path))
    return _scalar(node, f"{place(node.start_mark.line + 1)}: {key}" if key else place(node.start_mark.line + 1))


def _scalar(node: yaml.Node, where: str) -> Any:
    """Text, a whole or broken number in plain writing, true, false or null; nothing else that YAML 1.1 knows."""
    text, kind = str(node.value), str(node.tag).removeprefix(_TAG)
    shown = text if len(text) < _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
    if kind == "str":
        if _NUMBER_AS_TEXT.match(text) and not getattr(node, "style", None):
            raise UserError(f"YAML reads {shown!r} as text", where=where, remedy=f"Write {_as_yaml_number(text)}")
        return text
    if kind in ("int", "float") and not _PLAIN_NUMBER.match(text):
        raise UserError(
            f"YAML reads {shown!r} as a number in an unusual way", where=where, remedy="Write plain digits, or quote it"
        )
    if kind not in ("int", "float", "bool", "null"):
        raise UserError(f"{shown!r} is read as a {kind}", where=where, remedy="Quote it if it is text")
    if kind == "bool" and text.lower() not in ("true", "false"):
        raise UserError(
            f"YAML reads {shown!r} as true or false", where=where, remedy="Write true or false, or quote it"
        )
    return yaml.SafeLoader("").construct_object(node)


def _as_yaml_number(text: str) -> str:
    mantissa, exponent = text.lower().split("e")
    mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
    return f"{mantissa}e{exponent}" if exponent[0] in "+-" else f"{mantissa}e+{exponent}"
