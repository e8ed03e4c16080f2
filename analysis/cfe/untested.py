"""Why nothing of a method was tried on changed models: no request, no answer, or none that the base model accepts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.aggregate import lines

NOT_YET = "No counterfactual has been tested on a changed model yet."
NO_REQUEST = "The base models call every test row favourable, so there was nothing to ask for and nothing to test."
_OUTCOMES = {"not_found": "not found", "budget": "out of budget", "error": "ended in an error"}


def main_reasons(rows: pd.DataFrame, table: pd.DataFrame, keys: Sequence[str]) -> pd.Series:
    """The most frequent reason for a request without an answer, for each row of ``table``; null where there is none."""
    without = rows[rows["reason"].notna()] if "reason" in rows.columns else rows.iloc[:0]
    if without.empty:
        return pd.Series(pd.NA, index=table.index, dtype="string")
    counts = without.groupby([*keys, "reason"], dropna=False, sort=True).size().reset_index(name="n")
    most = counts.sort_values("n", ascending=False, kind="stable").drop_duplicates(list(keys))
    found = table[list(keys)].merge(most, on=list(keys), how="left")["reason"]
    return found.astype("string").set_axis(table.index)


def untested(part: pd.DataFrame) -> tuple[str, ...]:
    """A sentence for each method without a base-valid answer in ``part`` (rows of Table 6 with labels).

    One for all methods if there was no request.
    """
    if not int(part["requests"].sum()):
        return (NO_REQUEST,)
    return tuple(_sentence(row) for row in lines(part) if row.requests and not row.valid)


def why_nothing_was_tested(part: pd.DataFrame) -> tuple[str, ...]:
    """The sentences in place of numbers where no method of ``part`` has a robustness."""
    waiting = (NOT_YET,) if int(part["valid"].sum()) else ()
    return (*untested(part), *waiting)


def _sentence(row: Any) -> str:
    if row.generated:
        return (
            f"{row.method_label}: {row.generated:,} of {row.requests:,} requests were answered, and the base model "
            "accepts none of the answers, so no changed model was asked."
        )
    counts = [f"{getattr(row, name):,} {words}" for name, words in _OUTCOMES.items() if getattr(row, name)]
    why = [] if pd.isna(row.reason) else [f"most often: {row.reason}"]
    return (
        f"{row.method_label}: none of {row.requests:,} requests was answered ({'; '.join([*counts, *why])}), so no "
        "changed model was asked."
    )
