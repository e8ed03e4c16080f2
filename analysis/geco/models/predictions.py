"""What each trained classifier says of each row of its test split, from the tables of the stage ``train``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.geco.frames import TRAIN, model_settings
from analysis.load import LedgerLike, RecordLike, records, settings_of

COLUMN = "test_rows_at_best"
MODEL = ("dataset", "encoder", "paradigm", "protocol", "model_settings", "seed")
COLUMNS = (*MODEL, "row", "sentence_idx", "target", "predicted", "label", "probability", "probabilities")


def predictions(ledger: LedgerLike, ids: Collection[str] | None = None) -> pd.DataFrame:
    """One row per model and test row.

    Returns:
        Columns ``MODEL``; ``row``, ``sentence_idx``, ``target`` and ``predicted`` (-1: none) as recorded; ``label``,
        the name of the target's class; ``probabilities`` of the classes and ``probability`` of the target, null where
        a rule decides that gives none. Models whose table holds no test rows are left out.
    """
    frames = []
    for record in records(ledger, TRAIN, ids):
        table = ledger.table(record)
        if COLUMN in table.column_names and table[COLUMN].null_count < table.num_rows:
            frames.append(_of_model(record, table))
    if not frames:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(frames, ignore_index=True)


def model_keys(record: RecordLike) -> dict[str, Any]:
    """``MODEL`` of a record of the stage ``train``."""
    keys = {key: record.params.get(key) for key in MODEL if key != "model_settings"}
    return keys | {"model_settings": model_settings(settings_of(record, TRAIN))}


def model_facts(record: RecordLike) -> Mapping[str, Any]:
    """What a record says of its model: parts, numbers of parameters, class names; empty where it says nothing."""
    facts: Mapping[str, Any] = getattr(record, "info", {}).get("model") or {}
    return facts


def _of_model(record: RecordLike, table: pa.Table) -> pd.DataFrame:
    rows = pc.list_flatten(table[COLUMN].drop_null()).combine_chunks()
    fields = ("row", "sentence_idx", "target", "predicted")
    frame = pd.DataFrame({name: rows.field(name).to_numpy() for name in fields})
    labels = model_facts(record).get("labels") or []
    frame["label"] = [labels[number] if number < len(labels) else str(number) for number in frame["target"]]
    found = rows.field("probabilities").to_pylist()
    frame["probabilities"] = found
    frame["probability"] = [
        np.nan if shares is None else shares[target] for shares, target in zip(found, frame["target"], strict=True)
    ]
    for key, value in model_keys(record).items():
        frame[key] = value
    return frame[list(COLUMNS)]
