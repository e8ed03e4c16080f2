"""Seeds first: every statistic is computed within a seed, then its mean, standard deviation and n over the seeds.

The unit of replication is the trained model (a seed), not the sentence or the request. A seed that is not there, or
whose value is undefined, is left out and shows in n; nothing is ever filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd


def over_seeds(per_seed: pd.DataFrame, by: Sequence[str], values: Sequence[str]) -> pd.DataFrame:
    """Mean, standard deviation and n over seeds.

    Args:
        per_seed: one row per seed and group.
        by: the columns that name a group; nulls are a group of their own.
        values: columns with one number per seed; null where it is undefined.

    Returns:
        One row per group: ``by``, ``seeds`` (rows of the group) and for each value v: ``v`` (mean), ``v_sd`` (ddof 1;
        null for fewer than two seeds) and ``v_n`` (seeds with a value).
    """
    columns = [*by, "seeds", *(f"{value}{end}" for value in values for end in ("", "_sd", "_n"))]
    if per_seed.empty:
        return pd.DataFrame(columns=columns)
    numeric = per_seed[[*by, *values]].copy()
    for value in values:
        numeric[value] = pd.to_numeric(numeric[value]).astype("float64")
    groups = numeric.groupby(list(by), dropna=False, sort=True)
    out = groups.size().rename("seeds").to_frame()
    for value in values:
        out[value], out[f"{value}_sd"] = groups[value].mean(), groups[value].std(ddof=1)
        out[f"{value}_n"] = groups[value].count()
    return out.reset_index()[columns]


def seed_values(per_seed: pd.DataFrame, by: Sequence[str], value: str) -> pd.Series:
    """For each group the array of its defined seed values, in seed order; indexed by ``by``."""
    groups = per_seed.groupby(list(by), dropna=False, sort=True)[value]
    return groups.apply(lambda series: series.dropna().to_numpy(dtype=np.float64))


def reasons(frame: pd.DataFrame, by: Sequence[str], value: str, reason: str) -> pd.Series:
    """For each group a text such as ``empty_truth: 2, zero_attribution: 1``; empty when every row is defined."""
    lost = frame.loc[frame[value].isna(), [*by, reason]]
    every = frame[["cell", *by]].drop_duplicates("cell") if "cell" in frame.columns else frame
    groups = every.groupby(list(by), dropna=False, sort=True).size()
    if lost.empty:
        return pd.Series("", index=groups.index)
    counts = lost[reason].fillna("no reason given").groupby([lost[key] for key in by], dropna=False, sort=True)
    return counts.apply(_count_text).reindex(groups.index, fill_value="")


def lines(frame: pd.DataFrame) -> list[Any]:
    """The rows of ``frame`` as named tuples."""
    return list(frame.itertuples(index=False))


def highest(frame: pd.DataFrame, column: str) -> Any:
    """The row with the largest value of ``column``, the first of equals; the column has at least one value."""
    return lines(frame.iloc[[int(frame[column].astype("float64").argmax(skipna=True))]])[0]


def ratio(numerator: pd.Series, denominator: pd.Series) -> pd.Series:
    """``numerator / denominator`` with null, never 0 or infinity, where the denominator is 0."""
    below = denominator.astype("float64")
    return numerator.astype("float64") / below.where(below != 0)


def _count_text(values: pd.Series) -> str:
    counts = values.dropna().value_counts()
    return ", ".join(f"{name}: {counts[name]}" for name in sorted(counts.index))
