"""How many generated answers keep the constraints of their data set, shown apart from all other metrics."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.aggregate import lines
from analysis.views import number


def with_constraints(table: pd.DataFrame, answers: pd.DataFrame, group: Sequence[str]) -> pd.DataFrame:
    """The table with ``constraints_kept``, the share of generated answers; as it is where nothing is declared.

    Args:
        table: a row per group.
        answers: the counterfactuals' rows; their ``constraints_kept`` is null unless generated.
        group: the columns that name a group.
    """
    if table.empty or "constraints_kept" not in answers.columns:
        return table
    keys = list(group)
    kept = answers["constraints_kept"].astype("boolean").astype("Float64")
    shares = kept.groupby([answers[key] for key in keys], dropna=False, sort=True).mean().reset_index()
    return table.merge(shares, on=keys, how="left")


def constraint_notes(part: pd.DataFrame) -> list[str]:
    """One sentence with the share of each method, or none if nothing is declared."""
    if "constraints_kept" not in part.columns or not part["constraints_kept"].notna().any():
        return []
    shares = [
        f"{row.method_label} {number(100 * float(row.constraints_kept), 1)} %"
        for row in lines(part)
        if not pd.isna(row.constraints_kept)
    ]
    return [f"Answers that keep the constraints of the card (nothing is repaired): {', '.join(shares)}."]
