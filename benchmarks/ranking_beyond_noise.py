"""Pairs of methods whose order reverses between two change families by more than the spread of the base models.

A method is ahead of another in a family when the paired difference over base models excludes 0 (t test, two-sided),
after Holm's correction over all data sets, pairs and families. A pair reverses when each is ahead somewhere.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

LEVEL = 0.05


def reversals(families_by_seed: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Data set and both methods of each pair that reverses.

    Args:
        families_by_seed: ``dataset``, ``method``, ``family``, ``base_seed``, ``empirical_robustness``.
    """
    tests = _tests(families_by_seed)
    kept = tests[_holm(tests["p"].to_numpy()) < LEVEL]
    found = []
    for (dataset, first, second), part in kept.groupby(["dataset", "first", "second"], sort=True):
        signs = set(np.sign(part["ahead"]))
        if {1.0, -1.0} <= signs:
            found.append((str(dataset), str(first), str(second)))
    return found


def _tests(table: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, family and pair of methods: the mean paired difference and its p value."""
    rows = []
    for (dataset, family), part in table.groupby(["dataset", "family"], sort=True):
        values = part.pivot(index="base_seed", columns="method", values="empirical_robustness").dropna(axis=1)
        for first, second in combinations(values.columns, 2):
            gaps = (values[first] - values[second]).to_numpy()
            p = _p_value(gaps)
            rows.append({"dataset": dataset, "family": family, "first": first, "second": second,
                         "ahead": gaps.mean(), "p": p})  # fmt: skip
    return pd.DataFrame(rows, columns=["dataset", "family", "first", "second", "ahead", "p"])


def _p_value(gaps: np.ndarray) -> float:
    """Of the paired t test; equal gaps everywhere are 0 or 1, not a division by zero."""
    if len(gaps) < 2 or gaps.std() < 1e-12:
        return 1.0 if len(gaps) < 2 or abs(gaps.mean()) < 1e-12 else 0.0
    return float(stats.ttest_1samp(gaps, 0.0).pvalue)


def _holm(p: np.ndarray) -> np.ndarray:
    """Holm's adjusted p values."""
    order = np.argsort(p, kind="stable")
    adjusted = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    out = np.empty_like(adjusted)
    out[order] = np.minimum(adjusted, 1.0)
    return out
