"""Model bias: how good each classifier is at each class, and which classes it takes for which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.aggregate import over_seeds
from analysis.geco.models.predictions import MODEL

GROUP = tuple(key for key in MODEL if key != "seed")
MEASURES = ("recall", "specificity", "precision", "f1", "roc_auc")


def class_measures(predicted: pd.DataFrame) -> pd.DataFrame:
    """One row per model and class: each measure's mean, standard deviation and n over seeds.

    A class against all others: ``recall`` TP / P, ``specificity`` TN / N, ``precision`` TP / (TP + FP), ``f1``
    2 TP / (2 TP + FP + FN), ``roc_auc`` of the class's probability (null where a rule gives none). ``rows``: the
    class's test rows. A measure whose denominator is 0 is null.
    """
    columns = [*GROUP, "class", "label", "rows"]
    per_seed = pd.DataFrame(list(_by_seed(predicted)), columns=[*columns, "seed", *MEASURES])
    return over_seeds(per_seed, columns, MEASURES)


def _by_seed(predicted: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    for keys, part in predicted.groupby(list(MODEL), dropna=False, sort=True):
        *group, seed = keys
        target, found = part["target"].to_numpy(), part["predicted"].to_numpy()
        names = dict(zip(part["target"], part["label"], strict=True))
        for number in sorted(names):
            yield (
                *group,
                number,
                names[number],
                int((target == number).sum()),
                seed,
                *measures(target == number, found == number, _class_probability(part, number)),
            )


def _class_probability(part: pd.DataFrame, number: int) -> NDArray[np.float64] | None:
    if part["probabilities"].isna().any():
        return None
    return np.array([shares[number] for shares in part["probabilities"]], np.float64)


def measures(
    truth: NDArray[np.bool_], found: NDArray[np.bool_], probability: NDArray[np.float64] | None
) -> tuple[float, ...]:
    """``MEASURES`` of one class: ``truth`` (n,) its rows, ``found`` (n,) those taken for it; NaN where undefined."""
    true_positive, false_positive = int((truth & found).sum()), int((~truth & found).sum())
    false_negative, true_negative = int((truth & ~found).sum()), int((~truth & ~found).sum())
    return (
        _share(true_positive, true_positive + false_negative),
        _share(true_negative, true_negative + false_positive),
        _share(true_positive, true_positive + false_positive),
        _share(2 * true_positive, 2 * true_positive + false_positive + false_negative),
        float("nan") if probability is None else roc_auc(truth, probability),
    )


def roc_auc(truth: NDArray[np.bool_], score: NDArray[np.float64]) -> float:
    """Probability that a row of the class scores above another, ties by half; NaN where there is only one kind."""
    from scipy.stats import rankdata

    positive = int(truth.sum())
    negative = len(truth) - positive
    above = float(rankdata(score)[truth].sum()) - positive * (positive + 1) / 2
    return _share(above, positive * negative)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def confusion(predicted: pd.DataFrame) -> pd.DataFrame:
    """One row per model, class and class that its rows were taken for: the share of rows, over seeds.

    ``predicted`` is -1 where a rule predicts none. Pairs that no seed has are left out; a seed without a pair that
    another has counts 0 there.
    """
    columns = [*GROUP, "target", "label", "predicted"]
    rows = []
    for keys, part in predicted.groupby([*GROUP, "target", "label"], dropna=False, sort=True):
        taken_for = sorted(part["predicted"].unique())
        for seed, own in part.groupby("seed", dropna=False, sort=True):
            rows += [(*keys, number, seed, float((own["predicted"] == number).mean())) for number in taken_for]
    return over_seeds(pd.DataFrame(rows, columns=[*columns, "seed", "share"]), columns, ["share"])
