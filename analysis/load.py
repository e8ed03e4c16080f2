"""From a ledger to pandas frames: one row per sentence, request or model, with the cell's parameters beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

# The axes that tables are laid out by. Whatever else is in a cell's parameters goes into "settings", by which every
# table groups too, so that cells of unlike settings are never averaged.
AXES: dict[str, tuple[str, ...]] = {
    "train": ("dataset", "encoder", "paradigm", "seed", "protocol"),
    "explain": ("dataset", "encoder", "paradigm", "seed", "protocol", "method"),
    "score": ("dataset", "encoder", "paradigm", "seed", "protocol", "method"),
    "models": ("dataset", "base_seed", "seeding", "kind", "family", "variant", "change_id", "level"),
    "counterfactuals": ("dataset", "base_seed", "seeding", "method", "protocol"),
    "validity": ("dataset", "base_seed", "seeding", "method", "protocol", "family"),
}
_DERIVED = frozenset({"kind"})  # says nothing about the setting
_SEEDS = ("seed", "base_seed", "variant")
_COLUMNS: dict[str, tuple[str, ...]] = {
    "train": ("epoch",),
    "explain": ("row", "sentence_idx", "correct", "words", "truth", "attribution"),
    "score": ("row", "sentence_idx", "correct", "mass_accuracy", "reason"),
    "models": ("seed", "draw", "hard_disagreement", "probability_mae", "base_balanced_accuracy", "balanced_accuracy"),
    "counterfactuals": ("factual_id", "status", "reason", "distance"),
    "validity": ("factual_id", "status", "base_valid", "pairs", "survived", "eligible", "eligible_survived"),
}
_KEPT = frozenset(
    {"factual_id", "dataset_row_id", "status", "reason", "distance", "base_valid", "certified", "seconds"}
)


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


@dataclass(frozen=True)
class Frames:
    """The finished cells of both benchmarks, except attributions (see :func:`attributions`).

    Every frame has ``cell`` (the id), the stage's axes, ``settings`` (canonical JSON of the other parameters) and the
    columns of the stage's table. A stage without finished cells is a frame with no rows and the usual columns.

    ``unasked``: one row (axes and ``settings``) per counterfactuals cell whose table is empty, since its base model
    calls no test row adverse; no other frame shows that it ran.
    """

    train: pd.DataFrame
    score: pd.DataFrame
    truth_share: pd.DataFrame
    models: pd.DataFrame
    counterfactuals: pd.DataFrame
    validity: pd.DataFrame
    unasked: pd.DataFrame


def load(ledger: LedgerLike, ids: Collection[str] | None = None) -> Frames:
    """Read the finished cells whose ids are in ``ids``, or all of them.

    ``truth_share`` has one row per dataset and test row: the share of its words that are marked as decisive, which is
    the mass accuracy expected of an attribution that knows nothing.
    """
    counterfactuals = stage_frame(ledger, "counterfactuals", ids, _common)
    return Frames(
        train=stage_frame(ledger, "train", ids),
        score=stage_frame(ledger, "score", ids),
        truth_share=_truth_share(ledger, ids),
        models=stage_frame(ledger, "models", ids, _without_weights),
        counterfactuals=counterfactuals,
        validity=_largest_bank(stage_frame(ledger, "validity", ids, _count_survivors)),
        unasked=_unasked(ledger, ids, set(counterfactuals["cell"])),
    )


def records(ledger: LedgerLike, stage: str, ids: Collection[str] | None = None) -> list[RecordLike]:
    """The stage's records, sorted by id, limited to ``ids`` when given."""
    wanted = None if ids is None else set(ids)
    found = [
        record
        for record in ledger.records(stage)
        if (wanted is None or record.id in wanted) and record.params.get("kind") != "proof"  # a part of another cell
    ]
    return sorted(found, key=lambda record: str(record.id))


def stage_frame(
    ledger: LedgerLike,
    stage: str,
    ids: Collection[str] | None = None,
    reduce: Callable[[Any], Any] | None = None,
) -> pd.DataFrame:
    """All rows of one stage; ``reduce`` maps a table to a smaller one before it becomes pandas."""
    tables = []
    for record in records(ledger, stage, ids):
        table = ledger.table(record)
        tables.append(with_params(reduce(table) if reduce else table, stage, record))
    return _to_pandas(tables, stage)


def with_params(table: Any, stage: str, record: RecordLike) -> Any:
    """``table`` with the record's id, axes and settings as columns; the table's own columns win over equal names."""
    axes, have = AXES[stage], set(table.column_names)
    seconds = getattr(record, "info", {}).get("request_seconds")
    if seconds is not None and "seconds" not in have:  # a measurement, so it is in the record and not in the table
        table = table.append_column("seconds", pa.array(seconds, pa.float64()))
    added: dict[str, Any] = {"cell": record.id}
    added |= {axis: record.params.get(axis) for axis in axes if axis not in have}
    added["settings"] = _settings(record, axes)
    for name, value in added.items():
        column = pa.nulls(table.num_rows) if value is None else pa.repeat(value, table.num_rows)
        table = table.append_column(name, column)
    return table


def _settings(record: RecordLike, axes: Collection[str]) -> str:
    rest = {key: value for key, value in record.params.items() if key not in axes and key not in _DERIVED}
    return json.dumps(rest, sort_keys=True, default=str)


def model_settings(settings: str) -> str:
    """The part of a cell's ``settings`` that concerns the classifier: what explains it has more of them."""
    return json.dumps(json.loads(settings).get("paradigm_options", {}), sort_keys=True)


def _to_pandas(tables: list[Any], stage: str) -> pd.DataFrame:
    if not tables:
        return pd.DataFrame(columns=["cell", *AXES[stage], "settings", *_missing(stage)])
    frame: pd.DataFrame = pa.concat_tables(tables, promote_options="permissive").to_pandas()
    return _typed(frame, stage)


def attributions(
    ledger: LedgerLike, ids: Collection[str] | None, keep: Callable[[Mapping[str, Any]], bool], rows: Collection[int]
) -> pd.DataFrame:
    """Attributions of the test rows ``rows`` from the ``explain`` cells whose parameters satisfy ``keep``."""
    wanted = pa.array(sorted(rows), type=pa.int64())
    tables = []
    for record in records(ledger, "explain", ids):
        if keep(record.params):
            table = ledger.table(record)
            table = table.filter(pc.is_in(table["row"].cast(pa.int64()), value_set=wanted))
            tables.append(with_params(table, "explain", record))
    return _to_pandas(tables, "explain")


def _missing(stage: str) -> list[str]:
    return [column for column in _COLUMNS[stage] if column not in AXES[stage]]


def _typed(frame: pd.DataFrame, stage: str) -> pd.DataFrame:
    """Give columns that a partial table leaves out or all-null the type that the tables expect."""
    for column in _missing(stage):
        if column not in frame.columns:
            frame[column] = None
    for column in (*_SEEDS, "epoch"):
        if column in frame.columns:
            frame[column] = pd.to_numeric(frame[column]).astype("Int64")
    return frame


def _unasked(ledger: LedgerLike, ids: Collection[str] | None, seen: Collection[str]) -> pd.DataFrame:
    """The counterfactuals cells without a row among ``seen``, those that have one."""
    stage = "counterfactuals"
    axes = AXES[stage]
    rows = [
        {axis: record.params.get(axis) for axis in axes} | {"settings": _settings(record, axes)}
        for record in records(ledger, stage, ids)
        if record.id not in seen
    ]
    return _typed(pd.DataFrame(rows, columns=[*axes, "settings"]), stage)


def _largest_bank(validity: pd.DataFrame) -> pd.DataFrame:
    """One cell per method, base seed and family: grids that ask 5 and 25 variants share a run folder."""
    if validity.empty:
        return validity
    keys = [*AXES["validity"], "settings"]
    cells = validity.groupby([*keys, "cell"], dropna=False, sort=True)["variants"].max().reset_index()
    best = cells.sort_values(["variants", "cell"], ascending=[False, True]).drop_duplicates(keys)
    return validity[validity["cell"].isin(best["cell"])].reset_index(drop=True)


def _truth_share(ledger: LedgerLike, ids: Collection[str] | None) -> pd.DataFrame:
    """Share of marked words per (dataset, row); one ``explain`` cell per dataset and sample of sentences is enough."""
    seen: set[tuple[str, str]] = set()
    frames = []
    for record in records(ledger, "explain", ids):
        key = (str(record.params.get("dataset")), json.dumps(record.params.get("sentences"), default=str))
        if key in seen:
            continue
        seen.add(key)
        table = ledger.table(record)
        marked, words = _list_sums(table["truth"]), pc.list_value_length(table["truth"]).to_numpy()
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(words > 0, marked / np.maximum(words, 1), np.nan)
        frames.append(pd.DataFrame({"dataset": key[0], "row": table["row"].to_numpy(), "truth_share": share}))
    if not frames:
        return pd.DataFrame(columns=["dataset", "row", "truth_share"])
    return pd.concat(frames, ignore_index=True).drop_duplicates(["dataset", "row"], ignore_index=True)


def _list_sums(column: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The sum of each list of a list column; null lists give 0."""
    parents = pc.list_parent_indices(column).to_numpy()
    values = pc.list_flatten(column).cast(pa.float64()).to_numpy()
    return np.bincount(parents, weights=values, minlength=len(column)).astype(np.float64)


def _without_weights(table: Any) -> Any:
    """Nor the labels of the file, dictionary columns that say what the record says."""
    dropped = [one.name for one in table.schema if one.name == "weights" or pa.types.is_dictionary(one.type)]
    return table.drop_columns(dropped)


def _common(table: Any) -> Any:
    """The columns that all methods share; a method's own ones stay in the ledger."""
    return table.select([name for name in table.column_names if name in _KEPT])


def _count_survivors(table: Any) -> Any:
    """One row per request: how many of the family's variants accept its counterfactual (see cfe_tables).

    ``pairs`` = variants asked (0 unless base-valid), ``survived`` = those that accept; ``eligible`` and
    ``eligible_survived`` count only variants that still reject the factual; ``variants`` = size of the family here.
    """
    valid, adverse = table["variant_valid"], table["factual_still_adverse"]
    lengths = pc.fill_null(pc.list_value_length(valid), 0).to_numpy()
    asked = pc.max(pc.list_value_length(adverse)).as_py() or 0
    has_both = pc.and_(pc.is_valid(valid), pc.is_valid(adverse))
    both = table.filter(has_both)
    rows = np.flatnonzero(has_both.to_numpy())
    parents = rows[pc.list_parent_indices(both["variant_valid"]).to_numpy()]
    accepts = pc.list_flatten(both["variant_valid"]).cast(pa.float64()).to_numpy()
    rejects = pc.list_flatten(both["factual_still_adverse"]).cast(pa.float64()).to_numpy()
    count = table.num_rows
    added = {
        "pairs": lengths,
        "survived": _list_sums(valid),
        "eligible": np.bincount(parents, weights=rejects, minlength=count),
        "eligible_survived": np.bincount(parents, weights=rejects * accepts, minlength=count),
        "variants": np.full(count, asked),
    }
    kept = _common(table)
    for name, values in added.items():
        kept = kept.append_column(name, pa.array(np.asarray(values, dtype=np.int64)))
    return kept
