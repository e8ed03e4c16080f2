"""Where attributions are undefined, and how far they are from adding up to what they explain."""

from __future__ import annotations

import pandas as pd

from analysis.aggregate import lines
from analysis.geco.labels import with_labels
from analysis.styles import Titles
from analysis.views import View, number


def health_views(score: pd.DataFrame, completeness: pd.DataFrame, titles: Titles) -> list[View]:
    """Undefined values by reason, and completeness gaps of the methods that promise to add up."""
    return [view for view in (_undefined(score, titles), _gaps(completeness, titles)) if view]


def _undefined(score: pd.DataFrame, titles: Titles) -> View | None:
    if score.empty:
        return None
    keys = ["dataset", "encoder", "paradigm", "protocol", "method", "settings"]
    lost = score[score["mass_accuracy"].isna()]
    every = score.groupby(keys, dropna=False, sort=True).size().rename("rows").reset_index()
    counts = (
        lost.assign(reason=lost["reason"].fillna("no reason given")).groupby([*keys, "reason"], dropna=False).size()
    )
    labelled = with_labels(every, titles).merge(counts.rename("lost").reset_index(), on=keys)
    rows = tuple(
        (row.method_label, row.dataset_title, row.model_label, str(row.reason).replace("_", " "),
         f"{row.lost:,} of {row.rows:,}")
        for row in lines(labelled)
    )  # fmt: skip
    note = f"Mass accuracy is defined for {len(score) - len(lost):,} of {len(score):,} explained rows of all seeds."
    rows = rows or (("all methods", "all", "all", "–", f"0 of {len(score):,}"),)
    header = ("Method", "Data set", "Model", "Reason", "Undefined")
    return View("undefined", "Undefined mass accuracy", header, rows, notes=(note,))


def _gaps(completeness: pd.DataFrame, titles: Titles) -> View | None:
    known = completeness[completeness["median_gap"].notna()] if len(completeness) else completeness
    if known.empty:
        return None
    rows = tuple(
        (row.method_label, row.dataset_title, row.model_label, number(row.median_gap, 4), number(row.worst_gap, 4),
         f"{row.rows:,}")
        for row in lines(with_labels(known, titles))
    )  # fmt: skip
    note = "Gap: what is missing from the sum of attributions, as a share of the explained change; rows of all seeds."
    header = ("Method", "Data set", "Model", "Median gap", "Worst gap", "Rows")
    return View("gaps", "Completeness gap", header, rows, notes=(note,))
