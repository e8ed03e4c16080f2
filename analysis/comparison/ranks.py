"""Do several data sets order the methods alike? Friedman's test with Kendall's W, and Nemenyi's critical difference.

A block is a data set whose rows no other block shares. GECO's four tasks are forms of the same sentences and so no
four blocks: these tests are for the counterfactual benchmark alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Concordance:
    """Friedman's test of ``names`` names over ``blocks`` blocks.

    Attributes:
        chi2, p: the statistic (with its correction for ties) and its p; null where all names are level everywhere.
        w: Kendall's W = chi2 / (blocks (names - 1)), null likewise.
        critical_difference: mean ranks that differ by less can't be told apart (Nemenyi); null for two names, which
            have a sign test instead, whose p is then in ``p``.
        mean_ranks: name to mean rank, 1 the largest value.
    """

    names: int
    blocks: int
    chi2: float | None
    p: float | None
    w: float | None
    critical_difference: float | None
    mean_ranks: dict[str, float]


def concordance(values: pd.DataFrame) -> Concordance | None:
    """Friedman's test of ``values`` (names x blocks, larger is better); names with a gap are left out.

    Two names have a rule of their own: the exact sign test over the blocks where they differ. None for fewer than two
    names or blocks.
    """
    whole = values.dropna(axis="index", how="any")
    names, blocks = whole.shape
    if names < 2 or blocks < 2:
        return None
    ranked = whole.rank(axis="index", ascending=False, method="average")
    means = {str(name): float(value) for name, value in ranked.mean(axis="columns").sort_values(kind="stable").items()}
    w = kendalls_w(ranked)
    if names == 2:
        first, second = whole.to_numpy(dtype=np.float64)
        return Concordance(names, blocks, None, _sign_test(first - second), w, None, means)
    if w is None:
        return Concordance(names, blocks, None, None, None, critical_difference(names, blocks), means)
    from scipy.stats import chi2

    statistic = w * blocks * (names - 1)
    p = float(chi2.sf(statistic, names - 1))
    return Concordance(names, blocks, statistic, p, w, critical_difference(names, blocks), means)


def kendalls_w(ranked: pd.DataFrame) -> float | None:
    """Kendall's W of ranks (names x judges) corrected for ties; null where every judge has all names level."""
    data = ranked.to_numpy(dtype=np.float64)
    names, judges = data.shape
    sums = data.sum(axis=1)
    spread = float(((sums - sums.mean()) ** 2).sum())
    most = judges**2 * (names**3 - names) / 12 - judges * float(sum(_ties(column) for column in data.T)) / 12
    return spread / most if most > 0 else None


def critical_difference(names: int, blocks: int, level: float = LEVEL) -> float:
    """Nemenyi's: q sqrt(k (k + 1) / (6 n)) with q the upper quantile of the studentized range over sqrt 2."""
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - level, names, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(names * (names + 1) / (6 * blocks)))


def _ties(column: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    counts = np.unique(column, return_counts=True)[1].astype(np.float64)
    return float((counts**3 - counts).sum())


def _sign_test(differences: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float | None:
    from scipy.stats import binomtest

    moved = differences[differences != 0]
    return float(binomtest(int((moved > 0).sum()), len(moved)).pvalue) if len(moved) else None
