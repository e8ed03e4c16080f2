"""What each rule of correct classification counts: its denominators."""

from __future__ import annotations

from typing import get_args

import pandas as pd

from analysis.geco.filters import Rule, counted_rows
from analysis.geco.frames import GecoFrames, model_settings
from analysis.geco.tables import MODEL

_COUNTS = ("rows", "all_rows", "sentences", "all_sentences")


def denominator_table(frames: GecoFrames) -> pd.DataFrame:
    """One row per data set, model, protocol, seed and rule of :func:`counted_rows`.

    ``rows``: the test rows that count, ``sentences`` the source sentences with such a row; ``all_*`` whatever was
    explained.
    """
    keys = [*MODEL, "seed", "rule"]
    if frames.score.empty:
        return pd.DataFrame(columns=[*keys, *_COUNTS])
    found = []
    score = frames.score.assign(model_settings=frames.score["settings"].map(model_settings))
    for rule in get_args(Rule):
        rows = score.assign(rule=rule, counts=counted_rows(score, rule))
        rows = rows.drop_duplicates([*keys, "row"])  # every method explains the same rows
        groups = rows.groupby(keys, dropna=False, sort=True)
        kept = rows[rows["counts"]].groupby(keys, dropna=False, sort=True)["sentence_idx"].nunique()
        table = groups["counts"].agg(["sum", "count"]).set_axis(["rows", "all_rows"], axis=1)
        table["sentences"], table["all_sentences"] = kept, groups["sentence_idx"].nunique()
        found.append(table.fillna({"sentences": 0}).reset_index())
    return pd.concat(found, ignore_index=True).astype(dict.fromkeys(_COUNTS, "int64"))
