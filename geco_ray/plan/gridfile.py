"""Reading a grid's YAML so that every complaint can name the file and the line.

The reader of :mod:`geco_ray.files.yaml_lines` gives plain values and the line of every key path; an override puts its
own place over them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geco_ray.errors import UserError, suggest
from geco_ray.files.yaml_lines import KeyPath as KeyPath
from geco_ray.files.yaml_lines import Place, Strictness, decode_text, read_yaml

_STRICTNESS = Strictness("grids")


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
    text = decode_text(data, str(path))
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


def _parse(text: str, place: Place, path: KeyPath, places: dict[KeyPath, str]) -> Any:
    """The value of one YAML text that stands at ``path``; ``place`` tells where a line of it is."""
    document = read_yaml(text, place, _STRICTNESS, path)
    places.update((found, place(line)) for found, line in document.lines.items())
    return document.value
