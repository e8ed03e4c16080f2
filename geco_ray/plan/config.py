"""The typed shape of a grid: axes, protocol, and nothing implied.

Every field here changes a result and so reaches the identity of cells; what only changes how the work is done
(executor, device, workers, batch) is in :class:`RunSettings` and reaches none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from geco_ray.arithmetic import Arithmetic
from geco_ray.errors import UserError, suggest
from geco_ray.plan.gridfile import GridText, KeyPath, apply_override, find_grid, read_grid

T = TypeVar("T")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _one_or_many(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else (value,)


def _count_or_list(value: Any) -> Any:
    if not isinstance(value, int) or isinstance(value, bool):
        return tuple(value) if isinstance(value, list) else value
    if not 1 <= value <= _LARGEST_COUNT:
        raise ValueError(f"a count is between 1 and {_LARGEST_COUNT}; write [{value}] for the one number {value}")
    return tuple(range(value))


def _list_of_seeds(value: Any) -> Any:
    """Only a list: ``base_seeds: 2026`` could be one seed or 2,026 of them."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError(f"base seeds are a list; write [{value}] for the one seed {value}")
    return tuple(value) if isinstance(value, list) else value


def _named(value: Any) -> Any:
    """A component is its name, or a mapping of ``name`` and the options that differ from the defaults."""
    if isinstance(value, dict):
        if "name" not in value:
            raise ValueError("a mapping here needs the key 'name'")
        options = {key: item for key, item in value.items() if key != "name"}
        return {"name": value["name"], "options": options}
    return {"name": value, "options": {}}


class ComponentChoice(_Strict):
    """A paradigm, method or family as a grid names it, with the options it sets."""

    name: str
    options: dict[str, Any] = {}


_LARGEST_COUNT = 1000
Axis = Annotated[tuple[T, ...], BeforeValidator(_one_or_many), Field(min_length=1)]
Component = Annotated[ComponentChoice, BeforeValidator(_named)]
Protocol = Literal["paper", "corrected"]
Seeding = Literal["paper", "independent"]
Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0, le=2**32 - 1)]  # NumPy's legacy seeding, which scikit-learn uses, takes no more
Seeds = Annotated[tuple[Natural, ...], BeforeValidator(_list_of_seeds), Field(min_length=1)]
GridName = Annotated[str, Field(pattern=r"^[^/\\.\x00-\x1f][^/\\\x00-\x1f]*$", max_length=100)]
Numbers = Annotated[tuple[Natural, ...], BeforeValidator(_count_or_list), Field(min_length=1)]  # 3 is 0, 1, 2


class GecoAxes(_Strict):
    """GECOBench: datasets x encoders x paradigms x seeds x protocol, each explained by every method."""

    datasets: Axis[str]
    encoders: Axis[str]
    paradigms: Axis[Component]
    seeds: Numbers
    methods: Axis[Component]
    protocol: Axis[Protocol]
    sentences: Count | None = None


class CfeAxes(_Strict):
    """Robust counterfactuals: datasets x base seeds x seeding x (families x variants, methods x protocol)."""

    datasets: Axis[str]
    base_seeds: Seeds
    families: Axis[str]
    variants: Numbers
    methods: Axis[Component]
    protocol: Axis[Protocol]
    seeding: Axis[Seeding]


class Grid(_Strict):
    """A whole grid. ``only`` leaves out the other benchmark."""

    name: GridName
    description: str = ""
    geco: GecoAxes | None = None
    cfe: CfeAxes | None = None
    only: Literal["geco", "cfe"] | None = None

    def axes(self, benchmark: str) -> GecoAxes | CfeAxes | None:
        """The axes of one benchmark, None where the grid has none or leaves it out."""
        if self.only not in (None, benchmark):
            return None
        return self.geco if benchmark == "geco" else self.cfe


class RunSettings(BaseModel):
    """How the work is done. No field of this class may change a result; none reaches a cell's identity."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    root: str = "runs"
    data_dir: Path | None = None
    executor: Literal["ray", "inline"] = "ray"
    device: str = "auto"
    cpus: int | None = None
    gpus: float | None = None
    gpus_per_trial: float | None = None
    gpus_per_actor: float | None = None
    actors: int | None = None
    pack: int = 25
    address: str | None = None
    quiet: bool = False
    arithmetic: Arithmetic = "pinned"  # asks for kernels; a record says which were used


def load_grid(name: str, overrides: Iterable[str] = ()) -> tuple[Grid, GridText]:
    """Read, override and check a grid by name or path; names of components are checked when it is expanded.

    Raises:
        UserError: anything wrong, with file, line and key, and a suggestion for a misspelt key.
    """
    text = read_grid(find_grid(name))
    for override in overrides:
        apply_override(text, override)
    text.values.setdefault("name", Path(text.name).stem)
    try:
        grid = Grid.model_validate_json(json.dumps(text.values))
    except ValidationError as error:
        raise _explain(error, text) from None
    _check_whole(grid, text)
    return grid, text


def _check_whole(grid: Grid, text: GridText) -> None:
    for benchmark in ("geco", "cfe"):
        if text.values.get(benchmark, ...) is None:
            raise UserError(
                f"{benchmark} has no axes",
                where=text.place((benchmark,)),
                remedy=f"Give them, or leave {benchmark} out (only={'cfe' if benchmark == 'geco' else 'geco'})",
            )
    chosen = [benchmark for benchmark in ("geco", "cfe") if grid.axes(benchmark) is not None]
    if not chosen:
        asked = f"only={grid.only} and it has no {grid.only}: axes" if grid.only else "neither geco: nor cfe: is given"
        raise UserError(f"the grid is empty: {asked}", where=text.place(()), remedy="Add the axes of a benchmark")
    for benchmark in chosen:
        axes = grid.axes(benchmark)
        for key in type(axes).model_fields if axes else ():
            values = getattr(axes, key)
            if isinstance(values, tuple):
                refuse_twice(values, (benchmark, key), text)


def refuse_twice(values: Iterable[Any], path: KeyPath, text: GridText, show: Callable[[Any], str] = str) -> None:
    """Refuse an axis that lists one value twice: it would count one result as two."""
    seen: list[Any] = []
    for number, value in enumerate(values):
        if value in seen:
            shown = value.name if isinstance(value, ComponentChoice) else show(value)
            raise UserError(
                f"{'.'.join(map(str, path))} lists {shown!r} twice",
                where=text.place((*path, number)),
                remedy="Keep one",
            )
        seen.append(value)


def _explain(error: ValidationError, text: GridText) -> UserError:
    # A misspelt key is the cause, the key that is missing for it only the consequence.
    first = min(error.errors(include_url=False), key=lambda fault: fault["type"] != "extra_forbidden")
    path: KeyPath = tuple(first["loc"])
    key, where = ".".join(str(part) for part in path), text.place(path)
    if first["type"] == "extra_forbidden":
        model: Any = {"geco": GecoAxes, "cfe": CfeAxes}.get(str(path[0]), Grid) if len(path) > 1 else Grid
        return UserError(f"unknown key {key!r}", where=where, remedy=suggest(str(path[-1]), model.model_fields))
    if first["type"] == "missing":
        return UserError(f"the key {key!r} is missing", where=where, remedy="A grid states all of its axes")
    if first["type"] == "too_short":
        return UserError(f"the axis {key!r} is empty", where=where, remedy="Give at least one value")
    what = first["msg"].removeprefix("Value error, ")
    return UserError(
        f"{key}: {what}",
        where=where,
        found="null" if first["input"] is None else first["input"],
        remedy="Change the value; `geco-ray ls` and docs/grids.md tell what each key takes",
    )
