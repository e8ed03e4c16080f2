"""Does one ranking of the methods hold for every kind of model change? Kendall's W and reversed pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.comparison.pairs import LEVEL, holm
from analysis.comparison.ranks import kendalls_w


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far ``families`` rankings of ``methods`` methods agree.

    Attributes:
        w: Kendall's coefficient of concordance with its correction for ties, 0 (no agreement) to 1 (the same order);
            null where all methods are level in every family, which is no order at all.
        pairs: pairs of methods. reversed_pairs: pairs where each is strictly ahead in at least one family.
        tied_pairs: the other pairs that are level in at least one family.
        mean_ranks: method to its mean rank (1 is the most robust), best first.
    """

    methods: int
    families: int
    w: float | None
    pairs: int
    reversed_pairs: int
    tied_pairs: int
    mean_ranks: dict[str, float]


def ranks(values: pd.DataFrame) -> pd.DataFrame:
    """Rank of each row (method) within each column (family), 1 for the largest value, ties averaged."""
    return values.rank(axis="index", ascending=False, method="average")


def agreement(values: pd.DataFrame) -> Agreement | None:
    """Agreement of the columns of ``values`` (methods x families, larger is better).

    Methods or families with a gap are left out (families first, if they are empty), since ranks with gaps can't be
    compared; None if fewer than two of either remain.
    """
    whole = values.dropna(axis="columns", how="all").dropna(axis="index", how="any")
    count, judges = whole.shape
    if count < 2 or judges < 2:
        return None
    ranked = ranks(whole)
    turned, level = _pairs(whole.to_numpy(dtype=np.float64))
    order = ranked.mean(axis="columns").sort_values(kind="stable")
    return Agreement(
        methods=count,
        families=judges,
        w=kendalls_w(ranked),
        pairs=count * (count - 1) // 2,
        reversed_pairs=turned,
        tied_pairs=level,
        mean_ranks={str(name): float(value) for name, value in order.items()},
    )


def rank_table(families: pd.DataFrame) -> pd.DataFrame:
    """Rank of every method within each data set and change family by empirical robustness, and Kendall's W.

    Args:
        families: the table of :func:`analysis.cfe.tables.family_table`.

    Returns:
        One row per data set, protocol, seeding, family and method (with its settings): ``empirical_robustness``,
        ``rank`` (1 is the most robust, ties averaged, null without a value); and for the data set as a whole
        ``kendalls_w``, ``reversed_pairs`` and ``pairs`` (null where there is nothing to compare).
    """
    keys = ["dataset", "protocol", "seeding"]
    own = ["family", "method", "settings", "empirical_robustness", "rank"]
    columns = [*keys, *own, "kendalls_w", "reversed_pairs", "pairs"]
    parts = []
    for _, part in families.groupby(keys, dropna=False, sort=True):
        named = part.assign(name=part["method"] + " " + part["settings"])
        found = agreement(named.pivot(index="name", columns="family", values="empirical_robustness").astype("float64"))
        parts.append(
            part.assign(
                rank=part.groupby("family")["empirical_robustness"].rank(ascending=False, method="average"),
                kendalls_w=found.w if found else None,
                reversed_pairs=found.reversed_pairs if found else None,
                pairs=found.pairs if found else None,
            )
        )
    if not parts:
        return pd.DataFrame(columns=columns)
    table = pd.concat(parts, ignore_index=True)[columns]
    return table.sort_values([*keys, "family", "rank"], kind="stable", ignore_index=True)


def _pairs(values: NDArray[np.float64]) -> tuple[int, int]:
    """How many pairs of rows change places between columns, and how many others are equal in some column."""
    turned = level = 0
    for first in range(len(values)):
        for second in range(first + 1, len(values)):
            ahead = values[first] - values[second]
            swaps = bool((ahead > 0).any() and (ahead < 0).any())
            turned += swaps
            level += not swaps and bool((ahead == 0).any())
    return turned, level


def shown_reversals(per_seed: pd.DataFrame, level: float = LEVEL) -> int:
    """How many pairs of methods are ahead of each other in different families beyond the spread over base models.

    ``per_seed``: base seeds in the index, columns (name, family). Each pair and family is a paired t test; Holm's
    adjustment is over all of them, and a pair counts where two of its families are significant in opposite directions.
    """
    from scipy.stats import ttest_1samp

    names = list(dict.fromkeys(per_seed.columns.get_level_values(0)))
    pairs = [(one, two) for at, one in enumerate(names) for two in names[at + 1 :]]
    signs, ps = [], []
    for one, two in pairs:
        moved = (per_seed[one] - per_seed[two]).dropna(axis="columns", how="all")
        usable = moved.loc[:, moved.std(ddof=1) > 1e-12]
        signs.append(np.sign(usable.mean().to_numpy()))
        ps.append(ttest_1samp(usable, 0, nan_policy="omit").pvalue if usable.shape[1] else np.empty(0))
    passed = holm(np.concatenate([np.asarray(p, dtype=np.float64) for p in ps])) <= level if ps else np.empty(0)
    shown, at = 0, 0
    for own in signs:
        kept = own[passed[at : at + len(own)].astype(bool)]
        shown, at = shown + bool((kept > 0).any() and (kept < 0).any()), at + len(own)
    return shown
