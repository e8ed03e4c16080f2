"""What counterfactual methods are called in a table: titles, and settings only where they tell rows apart."""

from __future__ import annotations

import pandas as pd

from analysis.cfe.styles import TITLES
from analysis.styles import Titles
from analysis.views import settings_tails, with_titles

# Rows of unlike protocols never share a table, and what was tuned for each of them tells no two methods apart.
_APART = ["dataset", "protocol", "seeding"]


def with_labels(table: pd.DataFrame, titles: Titles = TITLES) -> pd.DataFrame:
    """Add ``method_label`` and a title for each data set, method and, where the table has them, change family."""
    kinds = [kind for kind in ("dataset", "method", "family") if kind in table.columns]
    out = with_titles(table, titles, kinds)
    tails = settings_tails(out, [*_APART, "method"], lambda key: True)
    out["method_label"] = [name + tail for name, tail in zip(out["method_title"], tails, strict=True)]
    return out
