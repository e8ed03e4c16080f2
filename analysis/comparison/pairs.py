"""Every pair of names compared: over the seeds they share, and over resampled sentences or requests within seeds.

Two questions that a table can't tell apart by itself: would other seeds order the two alike (paired t over seeds), and
would other sentences or requests (bootstrap of clusters with the seeds held fixed)? Both are asked of every pair. Where
all seeds see the same sentences, each of the two is blind to the other's chance: two equal methods would pass both on
8 % of pages of 4 methods. So a third test adds up both variances, and "ahead" takes all three. Intervals
that hold for all pairs of a page together keep the share of pages with any false "ahead" at most at its level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geco_ray.seeds import derive_seed

LEVEL = 0.05
RESAMPLES = 1_000
_MOST_ENUMERATED = 16  # 65,536 sign patterns
PAIR_COLUMNS = (
    "seeds", "difference", "sd", "p", "p_sign_flip", "p_sign_flip_least", "clusters", "cluster_se", "cluster_p",
    "joint_p",
)  # fmt: skip
ADJUSTED = ("low", "high", "cluster_low", "cluster_high", "verdict")
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Clusters:
    """What the value of each name and seed is made of: in seed s, ``sums[s] / counts[s]`` summed over clusters.

    Attributes:
        sums: for each seed an array (names, clusters); counts: likewise.
        shared: the clusters of all seeds are the same source sentences, so they are drawn together; else each seed has
            requests of its own.
    """

    sums: Sequence[Array]
    counts: Sequence[Array]
    shared: bool

    def resampled(self, stream: int) -> Array:
        """Values (resamples, names, seeds) over clusters drawn with replacement; null where none has a count."""
        generator, drawn, values = np.random.default_rng(stream), None, []
        for sums, counts in zip(self.sums, self.counts, strict=True):
            size = sums.shape[1]
            if drawn is None or not self.shared:
                drawn = generator.multinomial(size, np.full(size, 1 / size), RESAMPLES).astype(np.float64)
            below = drawn @ counts.T
            values.append(drawn @ sums.T / np.where(below > 0, below, np.nan))
        return np.stack(values, axis=2)


def compare_pairs(
    values: Array, clusters: Clusters | None, stream: str
) -> Iterator[tuple[int, int, dict[str, object]]]:
    """Every pair of rows of ``values`` (names, seeds; null where a seed is missing), the first minus the second.

    Only seeds that both have are compared, and none is filled in. Yields both rows' numbers and :data:`PAIR_COLUMNS`:
    ``p`` (paired t over seeds) is null below two seeds or where all seeds differ by the same amount, since there is no
    spread to judge by. ``stream`` names the random stream of the resamples.
    """
    drawn = None if clusters is None else clusters.resampled(derive_seed("clusters", stream))
    for first, second in combinations(range(len(values)), 2):
        differences = values[first] - values[second]
        shared = np.isfinite(differences)
        found = _over_seeds(differences[shared]) | {"clusters": 0, "cluster_se": np.nan, "cluster_p": np.nan}
        found["joint_p"] = found["p"]
        if clusters is not None and drawn is not None and shared.any():
            size = max(sums.shape[1] for sums, one in zip(clusters.sums, shared, strict=True) if one)
            found |= _over_clusters(drawn[:, first][:, shared] - drawn[:, second][:, shared], found, size)
            if clusters.shared:
                found["joint_p"] = _joint_p(found)
        yield first, second, found


def _over_seeds(differences: Array) -> dict[str, object]:
    from scipy.stats import t

    count = len(differences)
    mean = float(differences.mean()) if count else np.nan
    sd = float(differences.std(ddof=1)) if count > 1 else np.nan
    p = np.nan
    if count > 1 and sd > 1e-12:
        p = float(2 * t.sf(abs(mean) / (sd / np.sqrt(count)), count - 1))
    least = 2 / 2**count if count else np.nan
    return {"seeds": count, "difference": mean, "sd": sd, "p": p, "p_sign_flip": sign_flip(differences),
            "p_sign_flip_least": least}  # fmt: skip


def _over_clusters(drawn: Array, found: dict[str, object], size: int) -> dict[str, object]:
    from scipy.stats import t

    with np.errstate(invalid="ignore"):
        means = drawn.mean(axis=1)
    means = means[np.isfinite(means)]
    se = float(means.std(ddof=1)) if len(means) > 1 and size > 1 else np.nan
    p = float(2 * t.sf(abs(float(str(found["difference"]))) / se, size - 1)) if se > 1e-12 else np.nan
    return {"clusters": size, "cluster_se": se, "cluster_p": p}


def _joint_p(found: dict[str, object]) -> float:
    """Seeds and sentences both redrawn: their variances added, with the seeds' few degrees of freedom."""
    from scipy.stats import t

    mean, sd, seeds, se = (float(str(found[name])) for name in ("difference", "sd", "seeds", "cluster_se"))
    if np.isnan(float(str(found["p"]))) or np.isnan(se):
        return float("nan")
    return float(2 * t.sf(abs(mean) / np.sqrt(sd**2 / seeds + se**2), seeds - 1))


def sign_flip(differences: Array) -> float:
    """Exact two-sided p of the mean when the sign of each difference is a coin's; null without any or above 16.

    The smallest p that n differences can give is 2 / 2^n: .25 for 3, .0625 for 5.
    """
    count = len(differences)
    if not 1 <= count <= _MOST_ENUMERATED:
        return float("nan")
    sums = np.abs(_signs(count) @ differences)
    return float((sums >= abs(differences.sum()) - 1e-12).mean())


@cache
def _signs(count: int) -> Array:
    bits = np.arange(2**count)[:, None] >> np.arange(count) & 1
    return (2 * bits - 1).astype(np.float64)


def holm(p: Array) -> Array:
    """Holm's adjusted p-values of the family ``p``; a null stays null and is no member."""
    out = np.full(len(p), np.nan)
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = len(order) - np.arange(len(order))
    out[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1)
    return out


def adjusted(pairs: pd.DataFrame, level: float = LEVEL) -> pd.DataFrame:
    """``pairs`` with :data:`ADJUSTED`: intervals that hold for all rows together, and the verdict on each pair.

    ``low`` to ``cluster_high`` bound the differences over seeds and over clusters; at most ``level`` of such tables
    have any interval of a kind that misses its true difference (Bonferroni over the rows that have a p). Verdicts:
    ``ahead`` and ``behind`` (both intervals and the joint test keep clear of 0), ``seeds_ahead``, ``seeds_behind``,
    ``clusters_ahead``, ``clusters_behind`` (only the one does), ``not_told_apart``.
    """
    from scipy.stats import t

    out = pairs.copy()
    if out.empty:
        return out.reindex(columns=[*pairs.columns, *ADJUSTED])
    tests = (out[name].to_numpy(dtype=np.float64) for name in ("p", "cluster_p", "joint_p"))
    p_seeds, p_clusters, p_joint = tests
    part = level / max(1, int((np.isfinite(p_seeds) | np.isfinite(p_clusters)).sum()))
    mean, seeds, clusters = (out[name].to_numpy(dtype=np.float64) for name in ("difference", "seeds", "clusters"))
    errors = {"": (out["sd"].to_numpy(dtype=np.float64) / np.sqrt(np.maximum(seeds, 1)), seeds, p_seeds),
              "cluster_": (out["cluster_se"].to_numpy(dtype=np.float64), clusters, p_clusters)}  # fmt: skip
    signs = []
    for prefix, (error, size, p) in errors.items():
        reach = error * t.ppf(1 - part / 2, np.where(size > 1, size - 1, np.nan))
        out[f"{prefix}low"], out[f"{prefix}high"] = mean - reach, mean + reach
        signs.append(np.where(p <= part, np.sign(mean), 0))
    by_seeds, by_clusters = signs[0], np.where(clusters > 0, signs[1], signs[0])  # without clusters seeds alone decide
    jointly = (p_joint <= part) | (by_seeds == 0) | (by_clusters == 0)
    verdicts = [_verdict(*both) for both in zip(by_seeds, by_clusters, strict=True)]
    out["verdict"] = np.where(jointly, verdicts, "not_told_apart")
    return out


def _verdict(by_seeds: float, by_clusters: float) -> str:
    where = "" if by_seeds and by_clusters else "seeds_" if by_seeds else "clusters_"
    sign = by_seeds or by_clusters
    return f"{where}{'ahead' if sign > 0 else 'behind'}" if sign else "not_told_apart"


def detectable(seeds: int, pairs: int, level: float = LEVEL, power: float = 0.8) -> float | None:
    """The smallest difference that ``pairs`` comparisons over ``seeds`` seeds find with ``power``.

    In standard deviations of the paired difference, with intervals that hold for all together; None below two seeds.
    """
    from scipy.optimize import brentq
    from scipy.stats import nct, t

    if seeds < 2 or pairs < 1:
        return None
    bound = float(t.ppf(1 - level / pairs / 2, seeds - 1))

    def lacks(size: float) -> float:
        found = float(nct.sf(bound, seeds - 1, size * np.sqrt(seeds)))
        return (found if np.isfinite(found) else 1.0) - power

    return float(brentq(lacks, 0, 50 * bound))
