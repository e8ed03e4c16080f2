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

COLUMNS = ("method", "protocol", "seeding", "requests", "mean", "sd", "median", "p90", "max", "set_ups", "set_up_mean")


def runtime_table(ledger: LedgerLike, ids: Collection[str] | None = None) -> pd.DataFrame:
    """Seconds per request, failures included and set-up excluded, all data sets and base models pooled.

    A request's time is its batch's divided by the batch's size, so it is what a request costs in such a batch; for the
    paper's one-at-a-time times, generate with batches of one. ``set_up_mean``: seconds of set-up per base model.
    """
    pooled: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for record in records(ledger, COUNTERFACTUALS, ids):
        params: Any = record.params
        key = (str(params["method"]), str(params["protocol"]), str(params["seeding"]))
        times = pooled.setdefault(key, {"requests": [], "set_up": []})
        times["requests"] += list(record.info.get("request_seconds", ()))
        if record.info.get("set_up_seconds") is not None:
            times["set_up"].append(float(record.info["set_up_seconds"]))
    rows = []
    for key, times in sorted(pooled.items()):
        seconds, set_up = np.array(times["requests"], dtype=np.float64), times["set_up"]
        if not len(seconds):
            continue
        sd = seconds.std(ddof=1) if len(seconds) > 1 else np.nan
        statistics = (seconds.mean(), sd, np.median(seconds), np.quantile(seconds, 0.9), seconds.max())
        rows.append((*key, len(seconds), *statistics, len(set_up), np.mean(set_up) if set_up else np.nan))
    return pd.DataFrame(rows, columns=list(COLUMNS))
