"""GECOBench's finished cells as frames: training histories, scored sentences, the share of words that decide."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.load import LedgerLike, StageColumns, list_sums, records, stage_frame, to_frame, with_params

_MODEL = ("dataset", "encoder", "paradigm", "seed", "protocol")
TRAIN = StageColumns("train", _MODEL, ("epoch",), whole_numbers=("seed", "epoch"))
EXPLAIN = StageColumns(
    "explain",
    (*_MODEL, "method"),
    ("row", "sentence_idx", "correct", "words", "truth", "attribution"),
    whole_numbers=("seed",),
)
SCORE = StageColumns(
    "score",
    (*_MODEL, "method"),
    ("row", "sentence_idx", "correct", "mass_accuracy", "reason", "unit", "chance", "tokenizer"),
    whole_numbers=("seed",),
)
STAGES = (TRAIN, EXPLAIN, SCORE)


@dataclass(frozen=True)
class GecoFrames:
    """The finished cells of GECOBench, except attributions (see :func:`attributions`).

    ``truth_share`` has one row per dataset and test row: the share of its words that are marked as decisive. It stands
    for ``chance``, the mass accuracy expected of an attribution that knows nothing, where a score has none of its own.
    """

    train: pd.DataFrame
    score: pd.DataFrame
    truth_share: pd.DataFrame


def load(ledger: LedgerLike, ids: Collection[str] | None = None) -> GecoFrames:
    """Read the finished cells whose ids are in ``ids``, or all of them."""
    return GecoFrames(
        train=stage_frame(ledger, TRAIN, ids, _without_test_rows),
        score=stage_frame(ledger, SCORE, ids, _without_labels),
        truth_share=_truth_share(ledger, ids),
    )


def _without_test_rows(table: pa.Table) -> pa.Table:
    """A training history without what its model says of each test row (see :mod:`analysis.geco.models`)."""
    kept = [name for name in table.column_names if name != "test_rows_at_best"]
    return table.select(kept)


def model_settings(settings: str) -> str:
    """The part of a cell's ``settings`` that concerns the classifier: what explains it has more of them."""
    return json.dumps(json.loads(settings).get("paradigm_options", {}), sort_keys=True)


def attributions(
    ledger: LedgerLike, ids: Collection[str] | None, keep: Callable[[Mapping[str, Any]], bool], rows: Collection[int]
) -> pd.DataFrame:
    """Attributions of the test rows ``rows`` from the ``explain`` cells whose parameters satisfy ``keep``."""
    wanted = pa.array(sorted(rows), type=pa.int64())
    tables = []
    for record in records(ledger, EXPLAIN, ids):
        if keep(record.params):
            table = _without_labels(ledger.table(record))
            table = table.filter(pc.is_in(table["row"].cast(pa.int64()), value_set=wanted))
            tables.append(with_params(table, EXPLAIN, record))
    return to_frame(tables, EXPLAIN)


def with_chance(score: pd.DataFrame, truth_share: pd.DataFrame) -> pd.DataFrame:
    """``score`` with ``chance``, what knowing nothing gives of mass accuracy: for the pieces or words of its method.

    Where a score does not say, it is the share of marked words.
    """
    rows = score.merge(truth_share, on=["dataset", "row"], how="left")
    share = pd.to_numeric(rows["truth_share"]).astype("float64")
    own = pd.to_numeric(rows["chance"]).astype("float64") if "chance" in rows else share
    return rows.drop(columns="truth_share").assign(chance=own.fillna(share))


def _without_labels(table: Any) -> Any:
    """The table without what its cell's parameters say; its other dictionary columns as plain texts."""
    table = table.drop_columns([name for name in table.column_names if name in (*SCORE.axes, "options")])
    for number, one in enumerate(table.schema):
        if pa.types.is_dictionary(one.type):
            table = table.set_column(number, one.name, table[one.name].cast(one.type.value_type))
    return table


def _truth_share(ledger: LedgerLike, ids: Collection[str] | None) -> pd.DataFrame:
    """Share of marked words per (dataset, row); one ``explain`` cell per dataset and sample of sentences is enough."""
    seen: set[tuple[str, str]] = set()
    frames = []
    for record in records(ledger, EXPLAIN, ids):
        key = (str(record.params.get("dataset")), json.dumps(record.params.get("sentences"), default=str))
        if key in seen:
            continue
        seen.add(key)
        table = ledger.table(record)
        marked, words = list_sums(table["truth"]), pc.list_value_length(table["truth"]).to_numpy()
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(words > 0, marked / np.maximum(words, 1), np.nan)
        frames.append(pd.DataFrame({"dataset": key[0], "row": table["row"].to_numpy(), "truth_share": share}))
    if not frames:
        return pd.DataFrame(columns=["dataset", "row", "truth_share"])
    return pd.concat(frames, ignore_index=True).drop_duplicates(["dataset", "row"], ignore_index=True)
