"""Wilcoxon's signed-rank test of mass accuracy against chance and against the zero-shot model (GECOBench).

The paper tests the relative mass accuracy over all rows of all seeds. Rows of one source sentence (its forms, its
seeds) are not independent, so the test here is over source sentences, each first averaged over its forms and seeds;
the pooled test stands beside it. Relative mass accuracy is MA / MA of the zero-shot model, tested as its logarithm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.geco.frames import GecoFrames
from analysis.geco.tables import GROUP, by_cell

ZERO_SHOT = "bertzs"
COLUMNS = (*GROUP, "against", "sentences", "median", "p", "rows", "rows_undefined", "median_rows", "p_rows")


def signed_rank_table(frames: GecoFrames) -> pd.DataFrame:
    """One row per model, method and comparison, over correctly classified rows.

    ``against`` is ``chance`` (difference: mass accuracy minus the row's share of marked words) or ``zero_shot``
    (difference: logarithm of the relative mass accuracy; undefined where either is 0 or undefined). ``median`` and
    ``p`` (two-sided): over ``sentences`` source sentences; ``median_rows`` and ``p_rows``: over ``rows`` rows.
    """
    from geco_ray.errors import simplify

    score = frames.score
    if score.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    correct = score["correct"].astype("boolean").fillna(False).astype(bool)
    keys = ["dataset", "protocol", "method", "row"]
    zero_shot = {name for name in set(score["paradigm"]) if simplify(name) == ZERO_SHOT}
    reference = score[score["paradigm"].isin(zero_shot)].drop_duplicates(keys)[[*keys, "mass_accuracy"]]
    reference = reference.rename(columns={"mass_accuracy": "zero_shot"})
    reference["zero_shot"] = pd.to_numeric(reference["zero_shot"]).astype("float64")
    cells = by_cell(score)
    found = []
    places = score.index[correct].to_series().groupby(score.loc[correct, "cell"], sort=False).groups
    for group, own in cells.groupby(list(GROUP), dropna=False, sort=True):
        chosen = [places[cell] for cell in own["cell"] if cell in places]
        if chosen:
            rows = score.loc[np.concatenate(chosen), [*keys, "sentence_idx", "mass_accuracy"]]
            rows["mass_accuracy"] = pd.to_numeric(rows["mass_accuracy"]).astype("float64")
            same = reference[_same(reference, rows)]
            rows = rows.merge(frames.truth_share, on=["dataset", "row"], how="left").merge(same, on=keys, how="left")
            found += list(_tests(group, rows))
    return pd.DataFrame(found, columns=list(COLUMNS))


def _same(reference: pd.DataFrame, rows: pd.DataFrame) -> pd.Series:
    """The reference's rows of the data set, protocol and method of ``rows``, which are all of one group."""
    flags = pd.Series(True, index=reference.index)
    for key in ("dataset", "protocol", "method"):
        flags &= reference[key] == rows[key].iloc[0]
    return flags


def _tests(group: Any, part: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    chance = part["mass_accuracy"] - pd.to_numeric(part["truth_share"]).astype("float64")
    comparisons = {"chance": chance}
    if part["zero_shot"].notna().any() and group[2] is not None:
        ratio = part["mass_accuracy"] / part["zero_shot"].where(part["zero_shot"] > 0)
        comparisons["zero_shot"] = pd.Series(np.log(ratio.where(ratio > 0)), index=part.index)
    for against, difference in comparisons.items():
        if against == "zero_shot" and (difference.dropna() == 0).all():
            continue  # the zero-shot model against itself
        by_sentence = difference.groupby(part["sentence_idx"], sort=True).mean()
        sentences, every = (values.dropna().to_numpy(dtype=np.float64) for values in (by_sentence, difference))
        yield (
            *group, against, len(sentences), _median(sentences), signed_rank(sentences),
            len(every), int(difference.isna().sum()), _median(every), signed_rank(every),
        )  # fmt: skip


def signed_rank(differences: NDArray[np.float64]) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test against 0, zeros left out; null without any difference."""
    from scipy.stats import wilcoxon

    moved = differences[differences != 0]
    return float(wilcoxon(moved).pvalue) if len(moved) else float("nan")


def _median(values: NDArray[np.float64]) -> float:
    return float(np.median(values)) if len(values) else float("nan")
