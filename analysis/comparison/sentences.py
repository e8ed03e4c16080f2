"""What may be said of a leader: ahead of whom, not told apart from whom, and where seeds and sentences disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.aggregate import lines
from analysis.comparison.pairs import LEVEL, detectable
from analysis.findings import listed
from analysis.views import counted


@dataclass(frozen=True, slots=True)
class Words:
    """How a comparison is said: ``ahead`` of what ("ahead of"), over which ``seeds`` and ``clusters``, with digits.

    ``largest`` tells whether larger values are better; ``factor`` is applied to every number.
    """

    ahead: str
    seeds: tuple[str, str]
    clusters: str
    digits: int
    factor: float = 1.0
    largest: bool = True


Pairs = Mapping[tuple[str, str], Any]


def by_label(pairs: pd.DataFrame, label: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], Any]:
    """The rows of a table of pairs by the labels of their two names; ``label`` is keyed by name and settings."""
    found: dict[tuple[str, str], Any] = {}
    for row in lines(pairs):
        ends = (row.first, row.first_settings), (row.second, row.second_settings)
        if all(end in label for end in ends):
            found[label[ends[0]], label[ends[1]]] = row
    return found


def leaders(means: Mapping[str, float], largest: bool = True) -> list[str]:
    """The labels with a value, best first; equals stay in the order given."""
    known = [name for name, mean in means.items() if not pd.isna(mean)]
    return sorted(known, key=lambda name: -means[name] if largest else means[name])


def level_with(order: Sequence[str], means: Mapping[str, float]) -> list[str]:
    """The first of ``order`` and all that have exactly its value."""
    return [name for name in order if means[name] == means[order[0]]] if order else []


def standing(best: str, others: Sequence[str], pairs: Pairs, words: Words) -> str:
    """How ``best`` stands to each of ``others``, to follow its value; empty without others."""
    groups: dict[str, list[str]] = {"ahead": [], "seeds_ahead": [], "clusters_ahead": [], "level": []}
    for other in others:
        groups[_verdict(best, other, pairs, words.largest)].append(other)
    parts = [f"{words.ahead} {_names(groups['ahead'], others)}"] if groups["ahead"] else []
    parts += [_disagreement(best, groups[f"{side}_ahead"], pairs, words, side) for side in ("seeds", "clusters")]
    parts = [part for part in parts if part]
    if groups["level"]:
        nearest = _interval(best, groups["level"][0], pairs, words)
        parts.append(f"not told apart from {_names(groups['level'], others)}{nearest}")
    return "; ".join(parts)


def _names(group: Sequence[str], others: Sequence[str]) -> str:
    return f"all {len(group)} others" if len(group) == len(others) > 3 else listed(group)


def _verdict(best: str, other: str, pairs: Pairs, largest: bool) -> str:
    """From the leader's side; a lead the other way round, which resampling may give, is no lead of this one."""
    row = pairs.get((best, other))
    turned = row is None
    row = row if row is not None else pairs.get((other, best))
    if row is None or row.verdict == "not_told_apart":
        return "level"
    where, _, side = row.verdict.rpartition("_")
    ahead = (side == "ahead") != turned
    return f"{where}_ahead".lstrip("_") if ahead == largest else "level"


def _bounds(best: str, other: str, pairs: Pairs, words: Words, prefix: str = "") -> tuple[float, float, float] | None:
    """Difference and interval as better minus worse, times the factor."""
    row, sign = pairs.get((best, other)), 1.0
    if row is None:
        row, sign = pairs.get((other, best)), -1.0
    if row is None:
        return None
    sign *= words.factor * (1 if words.largest else -1)
    ends = sorted((sign * getattr(row, f"{prefix}low"), sign * getattr(row, f"{prefix}high")))
    return sign * row.difference, ends[0], ends[1]


def _disagreement(best: str, others: Sequence[str], pairs: Pairs, words: Words, sides: str) -> str:
    """Both intervals to the nearest of those where only one of them keeps clear of 0; empty without any."""
    if not others:
        return ""
    over_seeds, over_clusters = (_bounds(best, others[0], pairs, words, prefix) for prefix in ("", "cluster_"))
    seeds, clusters = _bracket(over_seeds, words), _bracket(over_clusters, words)
    one, two = (words.seeds[1], seeds), (words.clusters, clusters)
    yes, no = (one, two) if sides == "seeds" else (two, one)
    value = over_seeds[0] if over_seeds else 0.0
    to = f"to {others[0]}: " if len(others) > 1 else ""
    return (
        f"{words.ahead} {listed(others)} over {yes[0]} alone, not told apart over {no[0]} "
        f"({to}{value:.{words.digits}f}, {yes[1]} and {no[1]})"
    )


def _bracket(bounds: tuple[float, float, float] | None, words: Words) -> str:
    if bounds is None or pd.isna(bounds[1]):
        return "no interval"
    return f"[{bounds[1]:.{words.digits}f}, {bounds[2]:.{words.digits}f}]"


def _interval(best: str, other: str, pairs: Pairs, words: Words) -> str:
    bounds = _bounds(best, other, pairs, words)
    if bounds is None or pd.isna(bounds[1]):
        return ""
    return f" (to {other}: {bounds[0]:.{words.digits}f} {_bracket(bounds, words)})"


def comparison_notes(pairs: pd.DataFrame, words: Words, level: float = LEVEL) -> tuple[str, ...]:
    """How the comparisons are made, what the fewest seeds allow, and how large a difference they find."""
    one, many = words.seeds
    tested = pairs[pairs["p"].notna()]
    notes = [
        f"Compared: paired differences over {many} (t) and resampled {words.clusters} with the {many} fixed. A method "
        f"is said to be {words.ahead} another where both, and both variances together, keep clear of 0. "
        f"Brackets: t intervals that hold for all {len(pairs):,} pairs of these tables together, so that at most "
        f"{100 * level:.3g} % of such pages say a false '{words.ahead}'; where only one of the two keeps clear of 0, "
        "the sentence names both."
    ]
    if not tested.empty:
        fewest = int(tested["seeds"].min())
        least, size = 2 / 2**fewest, detectable(fewest, len(pairs), level)
        notes.append(
            f"With {counted(pd.Series([fewest]), one, many)} the exact sign-flip test cannot give a p below {least:.3g}"
            + (f", so by itself it can never be below {LEVEL}" if least > LEVEL else "")
            + f"; the t test finds a difference with a power of 80 % from {size:.1f} standard deviations of the paired "
            "difference on."
        )
    return tuple(notes)
