"""Why no attribution method of a model has a mass accuracy: no sentence counts, or none has a value."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd


def why_no_value(part: pd.DataFrame, references: Collection[str] = ()) -> str:
    """The end of a sentence about the rows of the mass accuracy's table of one model or of several.

    ``references`` are methods that explain no model. "Yet" is only said where no row is there at all.
    """
    if part.empty:
        return "no method has a value yet"
    rows = part[~part["method"].isin(references)]
    if rows.empty:
        return "only references were asked for, which explain no model"
    sentences, counted = int(rows["all_rows"].max()), int(rows["rows"].max())
    if not counted:
        return f"none of {sentences:,} explained sentences counts as correctly classified, so no method has a value"
    reasons = sorted({text for text in rows["reasons"] if isinstance(text, str) and text})
    return f"none of the {counted:,} sentences that count has a value for any method ({'; '.join(reasons)})"
