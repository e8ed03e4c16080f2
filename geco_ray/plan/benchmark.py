"""What a benchmark tells the frame: its axes, its stages, how its grids expand, and where its code is.

A benchmark is a package that declares one :class:`Benchmark` when it is imported: a folder of
``geco_ray/experiments``, or a package of your own that names its module under the entry-point group
``geco_ray.experiments``. Whoever needs one (planning, a run, each of Ray's workers, the analysis) asks the registry
here; nothing else in the frame names a benchmark or a stage.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from geco_ray.cells import Cell
from geco_ray.errors import UserError, unknown_name
from geco_ray.plan.axes import Axes
from geco_ray.plan.resolver import Resolver
from geco_ray.registry import Registry

DEFAULT_PACK = 25  # the changed models of one family and base model
RunsAs = Literal["trials", "actors", "driver"]


@dataclass(frozen=True)
class Stage:
    """One stage of a benchmark's cells.

    Attributes:
        name: of the stage, and of its folder in the ledger; no two benchmarks share one.
        runs_as: ``trials``: packs of cells, each one Ray Tune trial; ``actors``: cells asked of a loaded model that an
            actor keeps; ``driver``: cheap cells, in the driver's own process and on its CPU.
        small: its networks are so small that ``--device auto`` leaves them on CPUs, where they are fast.
        small_cell: the same by cell, of a stage that trains networks of all sizes; all cells of a pack are alike.
    """

    name: str
    runs_as: RunsAs
    small: bool = False
    small_cell: Callable[[Any], bool] | None = None


def own_pack(cell: Cell) -> Hashable:
    """The pack key of cells that are each computed on their own."""
    return cell.id


@dataclass(frozen=True)
class Benchmark:
    """One benchmark, declared once for the side that computes.

    What is text is ``module:name``, imported on first use, so that a declaration costs nothing to import.

    Attributes:
        name: its key in a grid, and what ``only`` takes. title: for people; benchmarks run in the order of titles.
        axes: the typed shape of its part of a grid.
        stages: in the order they run; a cell is computed from cells of its own or earlier stages.
        expand: axes to cells, upstream cells before what hangs on them; imports neither torch nor Ray.
        datasets: gives the names that its axis ``datasets`` takes, from the user's data folder (a path, or None).
        work: the module that registers how cells of its stages are computed (see ``geco_ray.experiments.base``).
        reading: the :class:`analysis.topic.Topic` that reads its finished cells.
        check_inputs: takes cells and the data folder, opens what the cells need, and raises UserError for what is
            missing, before anything is written; left out where there is nothing to open.
        find_missing: takes cells and the data folder and gives one sentence for everything that a run would not find
            or would refuse, without a tokenizer, a model or the network; may be left out.
        units: takes a stage and a cell's values (:meth:`Cell.params`) and gives how much work it is and how
            much is stored of it, in any units, for the estimates of a plan; left out, cells of a kind cost the same.
        pack_key: cells of one stage and kind with the same key are computed together.
        components: axis to the registry whose components it takes, as ``geco-ray ls`` shows them.
        health: gives a list of :class:`~geco_ray.plan.asset.Asset` from the data folder; may be left out.
    """

    name: str
    title: str
    axes: type[Axes]
    stages: tuple[Stage, ...]
    expand: Callable[[Any, Resolver], Iterator[Cell]]
    datasets: str
    work: str
    reading: str
    check_inputs: str | None = None
    find_missing: str | None = None
    units: str | None = None
    pack_key: Callable[[Any], Hashable] = own_pack
    components: Mapping[str, str] = field(default_factory=dict)
    health: str | None = None


BENCHMARKS: Registry[Benchmark] = Registry("benchmark", "geco_ray.experiments")


def declare(benchmark: Benchmark) -> None:
    """Make a benchmark known, as its package does when it is imported.

    Raises:
        ValueError: another one has its name or title.
    """
    register = BENCHMARKS.register(benchmark.name, title=benchmark.title, module=benchmark.axes.__module__)
    register(benchmark)


def benchmarks() -> list[Benchmark]:
    """All benchmarks, in the order in which they run and are shown."""
    return sorted((entry.target for entry in BENCHMARKS.entries()), key=lambda benchmark: benchmark.title)


def stage_owners() -> dict[str, Benchmark]:
    """Stage to its benchmark, in the order in which stages run.

    Raises:
        UserError: two benchmarks have a stage of one name.
    """
    owners: dict[str, Benchmark] = {}
    for benchmark in benchmarks():
        for stage in benchmark.stages:
            if (other := owners.setdefault(stage.name, benchmark)) is not benchmark:
                raise UserError(
                    f"the stage {stage.name!r} belongs to two benchmarks, {other.name} and {benchmark.name}",
                    where=benchmark.axes.__module__,
                    remedy=f"Name it otherwise there, such as {benchmark.name}_{stage.name}",
                )
    return owners


def stages() -> dict[str, Stage]:
    """Every stage by name, in the order in which they run."""
    stage_owners()  # refuses a name that two of them have
    return {stage.name: stage for benchmark in benchmarks() for stage in benchmark.stages}


def owner_of(stage: str) -> Benchmark:
    """The benchmark of a stage.

    Raises:
        UserError: no benchmark declares it.
    """
    owners = stage_owners()
    if stage not in owners:
        raise unknown_name("stage", stage, owners)
    return owners[stage]


def load_named(reference: str) -> Any:
    """What ``module:name`` names, or the module itself where no name is given."""
    module, _, name = reference.partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, name) if name else loaded
