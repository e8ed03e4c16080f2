"""From a ledger to pandas frames: one row per row of a stage's tables, with the cell's parameters beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

_DERIVED = frozenset({"kind"})  # the class of a cell says nothing about its settings


@dataclass(frozen=True)
class StageColumns:
    """What is read of one stage's cells.

    Attributes:
        name: the stage.
        axes: the parameters that tables are laid out by. Whatever else is in a cell's parameters goes into
            ``settings``, by which every table groups too, so that cells of unlike settings are never averaged.
        columns: columns of the stage's table that every frame has, also where a partial table lacks them.
        whole_numbers: columns that hold whole numbers or null.
        parts: kinds of cells that are only a part of another cell of the stage, and are not read.
    """

    name: str
    axes: tuple[str, ...]
    columns: tuple[str, ...]
    whole_numbers: tuple[str, ...] = ()
    parts: frozenset[str] = frozenset()

    @property
    def others(self) -> list[str]:
        """The columns that are no axes."""
        return [column for column in self.columns if column not in self.axes]


class RecordLike(Protocol):
    """What analysis needs of a finished cell's record."""

    @property
    def id(self) -> str: ...
    @property
    def params(self) -> Mapping[str, Any]: ...
    @property
    def info(self) -> Mapping[str, Any]: ...


class LedgerLike(Protocol):
    """What analysis needs of a ledger; :class:`geco_ray.ledger.Ledger` has it."""

    def records(self, stage: Any) -> Iterable[Any]: ...
    def table(self, record: Any) -> Any: ...


def records(ledger: LedgerLike, stage: StageColumns, ids: Collection[str] | None = None) -> list[RecordLike]:
    """The stage's records, sorted by id, limited to ``ids`` when given."""
    wanted = None if ids is None else set(ids)
    chosen = [
        record
        for record in ledger.records(stage.name)
        if (wanted is None or record.id in wanted) and record.params.get("kind") not in stage.parts
    ]
    return sorted(chosen, key=lambda record: str(record.id))


def stage_frame(
    ledger: LedgerLike,
    stage: StageColumns,
    ids: Collection[str] | None = None,
    reduce: Callable[[Any], Any] | None = None,
) -> pd.DataFrame:
    """All rows of one stage; ``reduce`` maps a table to a smaller one before it becomes pandas.

    Returns:
        Columns ``cell`` (the id), the stage's axes, ``settings`` (canonical JSON of the other parameters) and those of
        the stage's table. Without finished cells a frame with no rows and the usual columns.
    """
    tables = []
    for record in records(ledger, stage, ids):
        table = ledger.table(record)
        tables.append(with_params(reduce(table) if reduce else table, stage, record))
    return to_frame(tables, stage)


def with_params(table: Any, stage: StageColumns, record: RecordLike) -> Any:
    """``table`` with the record's id, axes and settings as columns; the table's own columns win over equal names."""
    own = set(table.column_names)
    added: dict[str, Any] = {"cell": record.id}
    added |= {axis: record.params.get(axis) for axis in stage.axes if axis not in own}
    added["settings"] = settings_of(record, stage)
    for name, value in added.items():
        column = pa.nulls(table.num_rows) if value is None else pa.repeat(value, table.num_rows)
        table = table.append_column(name, column)
    return table


def settings_of(record: RecordLike, stage: StageColumns) -> str:
    """The parameters of a cell that are no axes, as canonical JSON."""
    rest = {key: value for key, value in record.params.items() if key not in stage.axes and key not in _DERIVED}
    return json.dumps(rest, sort_keys=True, default=str)


def to_frame(tables: list[Any], stage: StageColumns) -> pd.DataFrame:
    """Tables of :func:`with_params` as one frame."""
    if not tables:
        return pd.DataFrame(columns=["cell", *stage.axes, "settings", *stage.others])
    frame: pd.DataFrame = pa.concat_tables(tables, promote_options="permissive").to_pandas()
    return typed(frame, stage)


def typed(frame: pd.DataFrame, stage: StageColumns) -> pd.DataFrame:
    """Give columns that a partial table leaves out or all-null the type that the tables expect."""
    for column in stage.others:
        if column not in frame.columns:
            frame[column] = None
    for column in stage.whole_numbers:
        if column in frame.columns:
            frame[column] = pd.to_numeric(frame[column]).astype("Int64")
    return frame


def list_sums(column: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The sum of each list of a list column; null lists give 0."""
    parents = pc.list_parent_indices(column).to_numpy()
    values = pc.list_flatten(column).cast(pa.float64()).to_numpy()
    return np.bincount(parents, weights=values, minlength=len(column)).astype(np.float64)
