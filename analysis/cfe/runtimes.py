"""How long counterfactuals took (the paper's Table 5), from the records, where measurements are kept.

Times differ between two runs of the same cells, so this table is no part of a report that must be the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from analysis.cfe.frames import COUNTERFACTUALS
from analysis.load import LedgerLike, records

COLUMNS = ("method", "protocol", "seeding", "requests", "batches", "mean", "set_ups", "set_up_mean")


def runtime_table(ledger: LedgerLike, ids: Collection[str] | None = None) -> pd.DataFrame:
    """Mean seconds per request, failures included and set-up excluded, all data sets and base models pooled.

    The requests of a batch run together, so there is a time of each batch and none of a request: no spread is given.
    For the paper's one-at-a-time times, generate with batches of one. ``set_up_mean``: seconds of a set-up.
    """
    pooled: dict[tuple[str, str, str], tuple[list[Any], list[float]]] = {}
    for record in records(ledger, COUNTERFACTUALS, ids):
        params: Any = record.params
        key = (str(params["method"]), str(params["protocol"]), str(params["seeding"]))
        batches, set_up = pooled.setdefault(key, ([], []))
        batches += record.info.get("batches", ())
        if record.info.get("set_up_seconds") is not None:
            set_up.append(float(record.info["set_up_seconds"]))
    rows = []
    for key, (batches, set_up) in sorted(pooled.items()):
        if requests := sum(batch["requests"] for batch in batches):
            mean = sum(batch["seconds"] for batch in batches) / requests
            rows.append((*key, requests, len(batches), mean, len(set_up), np.mean(set_up) if set_up else np.nan))
    return pd.DataFrame(rows, columns=list(COLUMNS))
