"""Wilcoxon's signed-rank test of mass accuracy against chance and against the zero-shot model (GECOBench).

The paper tests the relative mass accuracy over all rows of all seeds. Rows of one source sentence (its forms, its
seeds) are not independent, so the test here is over source sentences, each first averaged over its forms and seeds;
the pooled test stands beside it. Relative mass accuracy is MA / MA of the zero-shot model, tested as its logarithm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.geco.attributions.relative import with_reference
from analysis.geco.frames import GecoFrames, with_chance
from analysis.geco.tables import GROUP

COLUMNS = (*GROUP, "against", "sentences", "median", "p", "rows", "rows_undefined", "median_rows", "p_rows")


def signed_rank_table(frames: GecoFrames, references: Collection[str] | None = None) -> pd.DataFrame:
    """One row per model, method and comparison, over correctly classified rows.

    ``against`` is ``chance`` (difference: mass accuracy minus what knowing nothing gives) or ``zero_shot``
    (difference: logarithm of the relative mass accuracy; undefined where either is 0 or undefined). ``median`` and
    ``p`` (two-sided): over ``sentences`` source sentences; ``median_rows`` and ``p_rows``: over ``rows`` rows.
    Which model is the zero-shot one, ``references`` says, as in :func:`with_reference`.
    """
    score = frames.score
    if score.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    rows = with_chance(score, frames.truth_share)
    rows["mass_accuracy"] = pd.to_numeric(rows["mass_accuracy"]).astype("float64")
    pairs = with_reference(rows, references).drop_duplicates(["cell", "row"])
    pairs = pairs.rename(columns={"reference_mass_accuracy": "zero_shot"})[["cell", "row", "zero_shot"]]
    rows = rows.merge(pairs, on=["cell", "row"], how="left")
    rows = rows[rows["correct"].astype("boolean").fillna(False).astype(bool)]
    found = [line for group, part in rows.groupby(list(GROUP), dropna=False, sort=True) for line in _tests(group, part)]
    return pd.DataFrame(found, columns=list(COLUMNS))


def _tests(group: Any, part: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    chance = part["mass_accuracy"] - part["chance"]
    comparisons = {"chance": chance}
    if part["zero_shot"].notna().any():
        ratio = part["mass_accuracy"] / part["zero_shot"].where(part["zero_shot"] > 0)
        comparisons["zero_shot"] = pd.Series(np.log(ratio.where(ratio > 0)), index=part.index)
    for against, difference in comparisons.items():
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
