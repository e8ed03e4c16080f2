"""From a grid to its cells, and from cells to packs. Neither torch nor Ray is imported, and no model is opened."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path

from geco_ray.cells import Cell
from geco_ray.plan.benchmark import benchmarks, owner_of, stage_owners
from geco_ray.plan.config import Grid
from geco_ray.plan.gridfile import GridText
from geco_ray.plan.resolver import Resolver


def expand(grid: Grid, text: GridText, data_dir: Path | None = None) -> list[Cell]:
    """All cells of a grid, each once, upstream cells before what hangs on them.

    Raises:
        UserError: an unknown data set, encoder, paradigm, method, family or option, with its place; a data file that
            is needed to name the data and is not there.
    """
    unique: dict[str, Cell] = {}
    for benchmark in benchmarks():
        if (axes := grid.axes(benchmark.name)) is not None:
            for cell in benchmark.expand(axes, Resolver(benchmark.name, text, data_dir)):
                unique.setdefault(cell.id, cell)
    for stage in {cell.stage for cell in unique.values()}:
        owner_of(stage)  # refuses one that its benchmark forgot to declare
    order = {stage: number for number, stage in enumerate(stage_owners())}
    return sorted(unique.values(), key=lambda cell: order[cell.stage])  # stable: grid order within a stage


def packs(cells: Iterable[Cell], size: int) -> list[tuple[Cell, ...]]:
    """Group cells that are computed together: one pack is one trial.

    Cells of one stage and kind to which their benchmark gives the same key are one pack, or several of at most
    ``size``. Packing changes no result.
    """
    owners = stage_owners()
    groups: dict[tuple[str, str, Hashable], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.stage, cell.KIND, owners[cell.stage].pack_key(cell)), []).append(cell)
    return [tuple(group[i : i + size]) for group in groups.values() for i in range(0, len(group), size)]
