"""Counterfactual methods compared with each other: over base models, and over resampled requests within them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.cfe.frames import CfeFrames
from analysis.cfe.tables import GROUP
from analysis.comparison.pairs import ADJUSTED, LEVEL, PAIR_COLUMNS, Clusters, adjusted, compare_pairs
from analysis.comparison.sentences import Words

PART = ("dataset", "protocol", "seeding")
NAMES = ("first", "first_settings", "second", "second_settings")
COLUMNS = (*PART, "metric", *NAMES, *PAIR_COLUMNS, *ADJUSTED)
_SEEDS = ("base model", "base models")
WORDS = {
    "empirical_robustness": Words("ahead of", _SEEDS, "requests", 1, 100),
    "end_to_end": Words("ahead of", _SEEDS, "requests", 1, 100),
    "distance": Words("closer than", _SEEDS, "requests", 2, largest=False),
}
Array = NDArray[np.float64]


def comparison_table(frames: CfeFrames, level: float = LEVEL) -> pd.DataFrame:
    """One row per data set, metric and pair of methods: ``first`` minus ``second``, as fractions or distances.

    Resampled are the requests of each base model, each with all the changed models that were asked about it. Intervals
    and verdicts hold for all rows together, see :func:`analysis.comparison.pairs.adjusted`.
    """
    counts = request_counts(frames)
    found: list[tuple[Any, ...]] = []
    for part, rows in counts.groupby(list(PART), dropna=False, sort=True):
        for metric in WORDS:
            found += _of_part(part, metric, rows)
    return adjusted(pd.DataFrame(found, columns=[*PART, "metric", *NAMES, *PAIR_COLUMNS]), level)


def request_counts(frames: CfeFrames) -> pd.DataFrame:
    """One row per request: pairs, survived, request_pairs, whether it is base-valid, and its distance if it is."""
    keys = [*GROUP, "base_seed", "factual_id"]
    rows = frames.counterfactuals
    out = rows[keys].copy()
    out["valid"] = (rows["status"].astype("str") == "found").astype("float64")
    out["distance_sum"] = pd.to_numeric(rows["distance"]).astype("float64").where(out["valid"] > 0, 0.0)
    if frames.validity.empty or "variants" not in frames.validity.columns:
        return out.assign(pairs=0.0, survived=0.0, request_pairs=0.0)
    tested = frames.validity.groupby(keys, dropna=False, sort=False)[["pairs", "survived", "variants"]].sum()
    out = out.merge(tested.reset_index().rename(columns={"variants": "request_pairs"}), on=keys, how="left")
    return out.fillna({"pairs": 0.0, "survived": 0.0, "request_pairs": 0.0})


_MADE_OF = {
    "empirical_robustness": ("survived", "pairs"),
    "end_to_end": ("survived", "request_pairs"),
    "distance": ("distance_sum", "valid"),
}


def _of_part(part: Any, metric: str, rows: pd.DataFrame) -> list[tuple[Any, ...]]:
    above, below = _MADE_OF[metric]
    ends = rows[["method", "settings"]].drop_duplicates().sort_values(["method", "settings"])
    names = list(ends.itertuples(index=False, name=None))
    sums, counts = [], []
    for _, own in rows.groupby("base_seed", sort=True):
        table = own.pivot_table(
            index=["method", "settings"], columns="factual_id", values=[above, below], aggfunc="sum"
        )
        table = table.reindex(pd.MultiIndex.from_tuples(names, names=["method", "settings"]))
        sums.append(np.nan_to_num(table[above].to_numpy(dtype=np.float64)))
        counts.append(np.nan_to_num(table[below].to_numpy(dtype=np.float64)))
    if not sums:
        return []
    total = np.stack([count.sum(axis=1) for count in counts], axis=1)
    values = np.stack([top.sum(axis=1) for top in sums], axis=1) / np.where(total > 0, total, np.nan)
    pairs = compare_pairs(values, Clusters(sums, counts, shared=False), "/".join(map(str, (*part, metric))))
    return [
        (*part, metric, *names[first], *names[second], *(row[column] for column in PAIR_COLUMNS))
        for first, second, row in pairs
    ]
