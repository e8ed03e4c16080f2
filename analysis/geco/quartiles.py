"""Quartiles of mass accuracy over sentences, for boxes: pooled over seeds, as the paper's figures pool."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.geco.filters import counted_rows
from analysis.geco.tables import GROUP, by_cell

QUARTILES = {"low": 0.025, "q1": 0.25, "median": 0.5, "q3": 0.75, "high": 0.975}
COLUMNS = (*GROUP, "seeds", "rows", *QUARTILES)


def quartile_table(score: pd.DataFrame) -> pd.DataFrame:
    """One row per model and method over its correctly classified rows of all seeds together.

    ``q1``, ``median``, ``q3``: quartiles; ``low``, ``high``: the 2.5 % and 97.5 % quantiles, where the whiskers end;
    ``rows``: rows with a value; ``seeds``: how many seeds they are pooled from.
    """
    if score.empty or "mass_accuracy" not in score.columns:
        return pd.DataFrame(columns=list(COLUMNS))
    value = pd.to_numeric(score["mass_accuracy"]).astype("float64").where(counted_rows(score, "per_model_row"))
    cells = by_cell(score)
    codes = cells.groupby(list(GROUP), dropna=False, sort=True).ngroup()
    group = score["cell"].map(dict(zip(cells["cell"], codes, strict=True))).to_numpy()
    out = cells.assign(code=codes).groupby("code", sort=True)[list(GROUP)].first()
    out["seeds"] = codes.value_counts().sort_index()
    known = value.groupby(group, sort=True)
    out["rows"] = known.count()
    found = known.quantile(np.array(list(QUARTILES.values()))).unstack()
    for name, share in QUARTILES.items():
        out[name] = found[share]
    return out.reset_index(drop=True).astype(dict.fromkeys(QUARTILES, np.float64))[list(COLUMNS)]
