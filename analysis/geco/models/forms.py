"""Whether a classifier and its explanations treat the forms of a source sentence alike (GECOBench, gender difference).

Of a source sentence that the model gets right in both forms: the probability of the own class in one form less that in
the other, and the attribution of each word in one form less that of the same place in the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from analysis.aggregate import over_seeds
from analysis.geco.frames import EXPLAIN, model_settings
from analysis.geco.models.predictions import MODEL
from analysis.geco.statistics.signed_rank import signed_rank
from analysis.load import LedgerLike, stage_frame

GROUP = tuple(key for key in MODEL if key != "seed")
BY_SEED = (*MODEL, "first", "second", "sentences", "difference", "absolute", "p")
KINDS = ("truth", "other")
PAIRS = replace(EXPLAIN, columns=("sentence_idx", "first", "second", *KINDS))


def probability_differences(predicted: pd.DataFrame) -> pd.DataFrame:
    """One row per model seed and pair of classes, over source sentences with both forms classified right.

    ``difference``: mean of P(own class) in the form ``first`` less that in ``second``; ``absolute``: mean of its
    absolute value; ``p``: Wilcoxon's signed-rank test of the differences against 0, paired by sentence.
    """
    right = predicted[(predicted["predicted"] == predicted["target"]) & predicted["probability"].notna()]
    rows = []
    for keys, part in right.groupby(list(MODEL), dropna=False, sort=True):
        table = part.pivot_table(index="sentence_idx", columns="target", values="probability", aggfunc="mean")
        names = dict(zip(part["target"], part["label"], strict=True))
        for one, other in combinations(sorted(table.columns), 2):
            values = (table[one] - table[other]).dropna().to_numpy(np.float64)
            rows.append((*keys, names[one], names[other], *_summary(values)))
    return pd.DataFrame(rows, columns=list(BY_SEED))


def over_models(by_seed: pd.DataFrame, by: tuple[str, ...]) -> pd.DataFrame:
    """``difference`` and ``absolute`` over seeds, with ``p_seeds``: t-test of the seeds' differences against 0."""
    table = over_seeds(by_seed, by, ["difference", "absolute"])
    if table.empty:
        return table.assign(p_seeds=pd.Series(dtype="float64"))
    groups = by_seed.groupby(list(by), dropna=False, sort=True)["difference"]
    return table.assign(p_seeds=[_t_test(values.dropna().to_numpy(np.float64)) for _, values in groups])


def form_differences(table: pa.Table) -> pa.Table:
    """An explanation table as one row per pair of forms: ``sentence_idx``, ``first``, ``second`` (class numbers), and
    the mean difference of attribution over marked words (``truth``) and over the others (``other``), with
    ``truth_absolute`` and ``other_absolute``.

    Forms that are not both right, of unlike numbers of words, or without an attribution are left out.
    """
    frame = table.select(["sentence_idx", "target", "correct", "truth", "attribution"]).to_pandas()
    rows = [row for _, part in frame[frame["correct"]].groupby("sentence_idx") for row in _pairs(part)]
    names = ["sentence_idx", "first", "second", *(f"{kind}{end}" for kind in KINDS for end in ("", "_absolute"))]
    types = [pa.int64()] * 3 + [pa.float64()] * 4
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table({n: pa.array(v, t, from_pandas=True) for n, v, t in zip(names, columns, types, strict=True)})


def pair_frame(ledger: LedgerLike, ids: Collection[str] | None = None) -> pd.DataFrame:
    """:func:`form_differences` of all explanations."""
    frame = stage_frame(ledger, PAIRS, ids, form_differences)
    return frame.assign(model_settings=frame["settings"].map(model_settings))


def _pairs(part: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    forms = part.drop_duplicates("target").sort_values("target")
    for one, other in combinations(forms.itertuples(index=False), 2):
        a, b = (np.asarray(form.attribution, np.float64) for form in (one, other))
        if len(a) != len(b) or np.isnan(a).any() or np.isnan(b).any():
            continue
        marked, change = np.asarray(one.truth, bool) | np.asarray(other.truth, bool), a - b
        found = [_mean(values) for kind in (marked, ~marked) for values in (change[kind], np.abs(change[kind]))]
        yield one.sentence_idx, one.target, other.target, *found


def attribution_differences(pairs: pd.DataFrame) -> pd.DataFrame:
    """One row per model seed, method, pair of classes and kind of word, from rows of :func:`form_differences`."""
    keys = [*MODEL, "method", "settings", "first", "second"]
    rows = []
    for group, part in pairs.groupby(keys, dropna=False, sort=True):
        for kind in KINDS:
            values = part[kind].dropna().to_numpy(np.float64)
            rows.append(
                (*group, kind, len(values), _mean(values), _mean(part[f"{kind}_absolute"]), signed_rank(values))
            )
    return pd.DataFrame(rows, columns=[*keys, "words", "sentences", "difference", "absolute", "p"])


def _summary(values: NDArray[np.float64]) -> tuple[int, float, float, float]:
    return len(values), _mean(values), _mean(np.abs(values)), signed_rank(values)


def _mean(values: Any) -> float:
    defined = np.asarray(values, np.float64)
    defined = defined[~np.isnan(defined)]
    return float(defined.mean()) if len(defined) else float("nan")


def _t_test(values: NDArray[np.float64]) -> float:
    """Two-sided p of a one-sample t-test against 0; NaN for fewer than two values or without spread."""
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(values, 0.0).pvalue) if len(values) > 1 and np.ptp(values) > 0 else float("nan")
