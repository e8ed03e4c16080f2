"""Attribution methods compared with each other on each model: over its seeds, and over resampled source sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.comparison.pairs import ADJUSTED, LEVEL, PAIR_COLUMNS, Clusters, adjusted, compare_pairs
from analysis.geco.frames import model_settings
from analysis.geco.tables import GROUP, by_cell

MODEL = ("dataset", "encoder", "paradigm", "protocol", "model_settings")
NAMES = ("first", "first_settings", "second", "second_settings")
COLUMNS = (*MODEL, *NAMES, *PAIR_COLUMNS, *ADJUSTED)
Array = NDArray[np.float64]


def comparison_table(score: pd.DataFrame, references: frozenset[str], level: float = LEVEL) -> pd.DataFrame:
    """One row per model and pair of methods that explain it: ``first`` minus ``second`` in mean mass accuracy.

    Over the rows that the model got right. Resampled are source sentences with all their forms, the same in every seed.
    Intervals and verdicts hold for all rows together, see :func:`analysis.comparison.pairs.adjusted`.

    Args:
        score: the frame of scored sentences. references: methods that explain no model; they are left out.
        level: the share of pages that may hold a false "ahead".
    """
    if score.empty or "mass_accuracy" not in score.columns:
        return pd.DataFrame(columns=list(COLUMNS))
    score = score[~score["method"].isin(references)]
    groups = by_cell(score)[["cell", *GROUP, "seed"]]
    groups["model_settings"] = groups["settings"].map(model_settings)
    groups["seed"] = groups["seed"].astype("Float64").fillna(-1)
    value = pd.to_numeric(score["mass_accuracy"]).astype("float64")
    counts = score["correct"].astype("boolean").fillna(False).astype(bool) & value.notna()
    keys = [score["cell"], score["sentence_idx"]]
    sums = value.where(counts).groupby(keys, sort=True).sum().unstack(fill_value=0)
    sizes = counts.astype("float64").groupby(keys, sort=True).sum().unstack(fill_value=0)
    found: list[tuple[Any, ...]] = []
    for model, part in groups.groupby(list(MODEL), dropna=False, sort=True):
        found += _of_model(model, part, sums, sizes)
    return adjusted(pd.DataFrame(found, columns=[*MODEL, *NAMES, *PAIR_COLUMNS]), level)


def _of_model(model: Any, part: pd.DataFrame, sums: pd.DataFrame, sizes: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The pairs of one model's methods."""
    cells = part.pivot(index=["method", "settings"], columns="seed", values="cell")
    tops, belows = [], []
    for seed in cells.columns:
        tops.append(sums.reindex(cells[seed]).to_numpy(dtype=np.float64))
        belows.append(sizes.reindex(cells[seed]).fillna(0).to_numpy(dtype=np.float64))
    used = np.any([np.nansum(below, axis=0) > 0 for below in belows], axis=0)
    clusters = Clusters(
        [np.nan_to_num(top[:, used]) for top in tops], [below[:, used] for below in belows], shared=True
    )
    total = np.stack([below.sum(axis=1) for below in clusters.counts], axis=1)
    with np.errstate(invalid="ignore"):
        values = np.stack([top.sum(axis=1) for top in clusters.sums], axis=1) / np.where(total > 0, total, np.nan)
    names = list(cells.index)
    pairs = compare_pairs(values, clusters if used.any() else None, "/".join(map(str, model)))
    return [
        (*model, *names[first], *names[second], *(row[column] for column in PAIR_COLUMNS))
        for first, second, row in pairs
    ]
