"""The typed shape of a grid, with nothing implied, and the settings of a run.

Every key of a grid changes a result and so reaches the identity of cells; what only changes how the work is done
(executor, device, workers, batch) is in :class:`RunSettings` and reaches none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from geco_ray.arithmetic import Arithmetic
from geco_ray.errors import UserError, suggest
from geco_ray.plan.axes import Axes, refuse_duplicates
from geco_ray.plan.benchmark import DEFAULT_PACK, benchmarks
from geco_ray.plan.gridfile import GridText, KeyPath, apply_override, find_grid, read_grid

GridName = Annotated[str, Field(pattern=r"^[^/\\.\x00-\x1f][^/\\\x00-\x1f]*$", max_length=100)]


class Grid(Axes):
    """A whole grid: beside these keys, one per benchmark with its axes (see :func:`grid_class`).

    Attributes:
        only: the one benchmark to run of a grid that has several.
    """

    name: GridName
    description: str = ""
    only: str | None = None

    def axes(self, benchmark: str) -> Axes | None:
        """The axes of one benchmark, None where the grid has none or leaves it out."""
        if self.only not in (None, benchmark):
            return None
        axes: Axes | None = getattr(self, benchmark)
        return axes

    def chosen(self) -> dict[str, Axes]:
        """Benchmark to its axes, for those that are run, in the order of running."""
        axes = {benchmark.name: self.axes(benchmark.name) for benchmark in benchmarks()}
        return {name: chosen for name, chosen in axes.items() if chosen is not None}


def grid_class() -> type[Grid]:
    """:class:`Grid` with a key for every benchmark that is known."""
    fields: dict[str, Any] = {benchmark.name: (benchmark.axes | None, None) for benchmark in benchmarks()}
    only: Any = Literal[tuple(fields)]
    return create_model("Grid", __base__=Grid, **fields, only=(only | None, None))


class RunSettings(BaseModel):
    """How the work is done. No field of this class may change a result; none reaches a cell's identity."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    root: str = "runs"
    data_dir: Path | None = None
    executor: Literal["ray", "inline"] = "ray"
    device: str = "auto"
    cpus: int | None = None
    gpus: int | None = None
    gpus_per_trial: float | None = None
    gpus_per_actor: float | None = None
    actors: int | None = None
    pack: int = DEFAULT_PACK
    address: str | None = None
    quiet: bool = False
    arithmetic: Arithmetic = "pinned"  # asks for kernels; a record says which were used
    checkpoints: Literal["disk", "root", "off"] = "disk"
    cell_seconds: float | None = Field(None, gt=0)  # ends a cell as failed, never decides a value


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
        grid = grid_class().model_validate_json(json.dumps(text.values))
    except ValidationError as error:
        raise _explain(error, text) from None
    _check_benchmarks(grid, text)
    return grid, text


def _check_benchmarks(grid: Grid, text: GridText) -> None:
    """Refuse a benchmark without axes, a grid without a benchmark, an axis with a value twice."""
    known = [benchmark.name for benchmark in benchmarks()]
    for name in known:
        if text.values.get(name, ...) is None:
            others = " or ".join(f"only={other}" for other in known if other != name)
            raise UserError(
                f"{name} has no axes",
                where=text.place((name,)),
                remedy=f"Give them, or leave {name} out ({others})",
            )
    chosen = grid.chosen()
    if not chosen:
        none_given = f"neither {' nor '.join(f'{name}:' for name in known)} is given"
        why = f"only={grid.only} and it has no {grid.only}: axes" if grid.only else none_given
        raise UserError(f"the grid is empty: {why}", where=text.place(()), remedy="Add the axes of a benchmark")
    for name, axes in chosen.items():
        for key in type(axes).model_fields:
            values = getattr(axes, key)
            if isinstance(values, tuple):
                refuse_duplicates(values, (name, key), text)


def _explain(error: ValidationError, text: GridText) -> UserError:
    # A misspelt key is the cause, the key that is missing for it only the consequence.
    first = min(error.errors(include_url=False), key=lambda fault: fault["type"] != "extra_forbidden")
    path: KeyPath = tuple(first["loc"])
    key, where = ".".join(str(part) for part in path), text.place(path)
    if first["type"] == "extra_forbidden":
        axes = {benchmark.name: benchmark.axes for benchmark in benchmarks()}
        model: type[BaseModel] = axes.get(str(path[0]), grid_class()) if len(path) > 1 else grid_class()
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
