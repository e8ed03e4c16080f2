"""How far attributions are from adding up to what they explain, for methods that promise it."""

from __future__ import annotations

import pandas as pd

from analysis.geco.frames import GecoFrames
from analysis.geco.tables import GROUP

_COUNTS = ("rows", "without_change")
_VALUES = ("median_gap", "worst_gap", "special_share", "prompt_share")


def completeness_table(frames: GecoFrames) -> pd.DataFrame:
    """One row per data set, model, protocol and method, over all rows of all seeds.

    ``median_gap`` and ``worst_gap``: the absolute completeness gap as a share of the explained change, over ``rows``;
    ``without_change``: rows whose explained change is 0, which have none. Null for methods that promise nothing of the
    kind. ``special_share`` and ``prompt_share``: means of the attribution's share outside the words.
    """
    score = frames.score
    if score.empty or "completeness_gap" not in score:
        return pd.DataFrame(columns=[*GROUP, *_VALUES, *_COUNTS])
    number = {
        name: pd.to_numeric(score[name]).astype("float64")
        for name in ("completeness_gap", "explained_change", "special_share", "prompt_share")
    }
    change = number["explained_change"].abs()
    relative = number["completeness_gap"].abs() / change.where(change > 0)
    by = [score[key] for key in GROUP]
    groups = relative.groupby(by, dropna=False, sort=True)
    parts = {
        "median_gap": groups.median(),
        "worst_gap": groups.max(),
        "rows": groups.count(),
        "without_change": (change == 0).groupby(by, dropna=False, sort=True).sum(),
    }
    for name in ("special_share", "prompt_share"):
        parts[name] = number[name].groupby(by, dropna=False, sort=True).mean()
    return pd.DataFrame(parts).reset_index()[[*GROUP, *_VALUES, *_COUNTS]]
