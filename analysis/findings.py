"""What tables say, as plain sentences computed from them, "not decisive" included.

A lead counts as decisive when the 95 % bootstrap interval of no other method overlaps with the leader's. The interval
rests on the seeds alone and is too narrow when they are few, so a decisive lead is a minimum, not a proof.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.intervals import FEWEST_SEEDS, Interval, Lead

INTERVALS = (
    "Brackets: 95 % bootstrap interval of the mean over seeds (10,000 resamples); with few seeds it is too narrow. "
    f"A lead is called decisive when it rests on at least {FEWEST_SEEDS} seeds and no other method's interval "
    "overlaps with the leader's."
)


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b`` or ``a, b and c``."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def interval(mean: float, low: float, high: float, n: int) -> Interval:
    """An interval from a table's numbers, null where one is missing."""

    def known(value: float) -> float | None:
        return None if pd.isna(value) else float(value)

    return Interval(known(mean), known(low), known(high), int(n))


def bracket(value: Interval, digits: int, factor: float = 1.0) -> str:
    """``0.71 [0.68, 0.73]``, each number times ``factor``."""
    text = f"{factor * (value.mean or 0.0):.{digits}f}"
    if value.low is None or value.high is None:
        return text
    return f"{text} [{factor * value.low:.{digits}f}, {factor * value.high:.{digits}f}]"


def verdict(best: Lead) -> str:
    """How sure the lead is, to follow the leader's name and value."""
    if best.compared == 1:
        return ", the only method with a value"
    if best.decisive:
        return ", a decisive lead"
    if best.interval.n < FEWEST_SEEDS:
        return f"; not decisive, n={best.interval.n} is too few"
    those = "that" if len(best.rivals) == 1 else "those"
    return f"; not decisive, its interval overlaps with {those} of {listed(best.rivals)}"
