"""What a stage tells the frame about its work, and what it gets and gives.

A stage registers one of two things, when its benchmark's ``work`` module is imported: a *computation* of a pack of
cells (``@computation``), or how a *loaded model* is opened that an actor keeps and asks many times (``serve_stage``).
How a cell is then computed and committed is in :mod:`geco_ray.experiments.worker`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from geco_ray.cells import Cell
from geco_ray.errors import UserError
from geco_ray.ledger import Ledger
from geco_ray.ledger.partial import PartialWork, Where, partial_storage
from geco_ray.plan.benchmark import load_named, owner_of
from geco_ray.registry import Entry, Options, Registry

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


@dataclass(frozen=True)
class WorkerContext:
    """What a worker must know besides its cells. None of it changes a result.

    Attributes:
        root: the run folder. data_dir: where the user's data lies, None for the cache. device: as
            :func:`geco_ray.device.resolve_device` takes it. threads: CPU threads of this worker.
        gpu_share: of a GPU and its memory; 0 where nothing is shared out.
        on_epoch: told of each epoch of a training: its cell, and number, losses and accuracy by name.
        checkpoints: where work of minutes is kept (see :func:`geco_ray.ledger.partial.partial_storage`).
        cell_seconds: what computing one cell may take; None sets no limit.
    """

    root: str
    data_dir: Path | None = None
    device: str = "auto"
    threads: int = 1
    checkpoints: Where = "disk"
    gpu_share: float = 0.0
    on_epoch: Callable[[Cell, Mapping[str, float | None]], None] | None = None
    cell_seconds: float | None = None


@dataclass(frozen=True)
class Result:
    """What a computation gives for one cell: rows, weights if any, and facts for the record (no identity)."""

    table: pa.Table
    blob: bytes | None = None
    info: dict[str, Any] = field(default_factory=dict)


Compute = Callable[[Sequence[Any], Ledger, WorkerContext], Iterator[tuple[Cell, Result]]]


@dataclass(frozen=True)
class Computation:
    """How packs of one stage and kind are computed; with ``recompute_pack`` always as a whole."""

    compute: Compute
    recompute_pack: bool


class LoadedModel(Protocol):
    """Something expensive to load, a model or a bank of them, that answers cells one after another."""

    def answer(self, cell: Any) -> Result:
        """Compute one cell."""


@dataclass(frozen=True)
class ServedStage:
    """A stage that runs on actors: ``key`` tells which loaded model a cell asks, ``load`` opens it."""

    key: Callable[[Any], str]
    load: Callable[[Any, Ledger, WorkerContext], LoadedModel]


_computations: dict[tuple[str, str], Computation] = {}
_served: dict[str, ServedStage] = {}


def computation(stage: str, kind: str = "", *, recompute_pack: bool = False) -> Callable[[Compute], Compute]:
    """Decorator: the function below computes packs of this stage.

    With ``recompute_pack`` it always gets the whole pack, also when some of its cells are done already: cells of one
    stack then come out with the same bytes whether or not a run was interrupted between them.
    """

    def add(function: Compute) -> Compute:
        _computations[stage, kind] = Computation(function, recompute_pack)
        return function

    return add


def serve_stage(stage: str, served: ServedStage) -> None:
    """Register how a stage's models are loaded."""
    _served[stage] = served


def computation_of(cell: Cell) -> Computation:
    """How packs of the cell's stage and kind are computed.

    Raises:
        UserError: no benchmark has the stage. KeyError: its benchmark registers no computation for it.
    """
    _load_work(cell.stage)
    return _computations[cell.stage, cell.KIND]


def served_stage(stage: str) -> ServedStage:
    """How actors serve ``stage``; raises as :func:`computation_of` does."""
    _load_work(stage)
    return _served[stage]


def _load_work(stage: str) -> None:
    """Import what registers the work of a stage's benchmark, in whichever process this is."""
    load_named(owner_of(stage).work)


def partial_work(cell: Cell, ledger: Ledger, context: WorkerContext) -> PartialWork | None:
    """Where a cell that takes minutes keeps its unfinished work; None where none is kept. It goes when it commits."""
    storage = partial_storage(ledger.storage, context.checkpoints)
    return None if storage is None else PartialWork(storage, cell.id)


def component_of(registry: Registry[T], name: str, code: str, options: Options | None = None) -> Entry[T]:
    """The component that a cell was planned with, under the name that its options give it.

    Raises:
        UserError: its code is another one in this process; or it is not known here.
    """
    own = options or Options()
    entry = registry.get(own.registered_as or name)
    require_unchanged(registry.kind, name, entry.code, code)
    return entry.called_by(own)


def origin_facts(entry: Entry[Any]) -> dict[str, Any]:
    """For the record: package, hash, distribution and version of a component from outside; nothing for ours."""
    return {"code": {entry.name: entry.origin.facts()}} if entry.origin is not None else {}


def require_unchanged(kind: str, name: str, found: str, planned: str) -> None:
    """Refuse data or an encoder that is not what the cell's id says.

    Raises:
        UserError: the fingerprints differ.
    """
    if found != planned:
        raise UserError(
            f"the {kind} {name!r} has changed since the grid was planned, or is another one on this machine",
            found=found,
            expected=planned,
            remedy="Run the same command again",
        )
