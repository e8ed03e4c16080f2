"""What became of the requests: answers by status, and answers that break a constraint of the data set."""

from __future__ import annotations

import pandas as pd

from analysis.cfe.labels import with_labels
from analysis.styles import Titles
from analysis.views import View


def health_views(counterfactuals: pd.DataFrame, titles: Titles) -> list[View]:
    """Requests by method and status, with the invalid moves."""
    if counterfactuals.empty:
        return []
    labelled = with_labels(counterfactuals, titles)
    statuses = sorted(set(labelled["status"]), key=lambda status: (status != "found", status))
    rows = []
    for _, part in labelled.groupby(["dataset_rank", "dataset", "protocol", "seeding", "method_rank", "method_label"]):
        first, counts = part.iloc[0], part["status"].value_counts()
        shown = (f"{int(counts.get(status, 0)):,}" for status in statuses)
        rows.append((str(first["method_label"]), str(first["dataset_title"]), f"{len(part):,}", *shown, _invalid(part)))
    header = ("Method", "Data set", "Requests", *(status.replace("_", " ") for status in statuses), "Invalid moves")
    note = "Invalid moves: answers that break a constraint of the data set's card; “–” where the card has none."
    return [View("answers", "Answers by status", header, tuple(rows), notes=(note,))]


def _invalid(part: pd.DataFrame) -> str:
    kept = part["constraints_kept"].dropna() if "constraints_kept" in part else pd.Series(dtype=bool)
    return f"{int((~kept.astype(bool)).sum()):,} of {len(kept):,}" if len(kept) else "–"
