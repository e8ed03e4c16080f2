"""What GECOBench's methods and models are called in a table: titles, and settings only where they tell rows apart."""

from __future__ import annotations

import pandas as pd

from analysis.geco.styles import TITLES
from analysis.styles import Titles
from analysis.views import settings_tails, with_titles

_OF_THE_MODEL = ("paradigm_options", "encoder_fingerprint")  # the other settings are the method's
_APART = ["dataset", "protocol"]  # rows of unlike protocols never share a table


def with_labels(table: pd.DataFrame, titles: Titles = TITLES) -> pd.DataFrame:
    """Add ``method_label``, ``model_label`` and a title for each data set, paradigm and method."""
    out = with_titles(table, titles, ("dataset", "paradigm", "method"))
    tails = settings_tails(out, [*_APART, "method"], lambda key: not key.startswith(_OF_THE_MODEL))
    out["method_label"] = [name + tail for name, tail in zip(out["method_title"], tails, strict=True)]
    several = out.groupby("paradigm")["encoder"].nunique()
    tails = settings_tails(out, [*_APART, "encoder", "paradigm"], lambda key: key.startswith(_OF_THE_MODEL))
    out["model_label"] = [
        title + (f" ({encoder})" if several[paradigm] > 1 else "") + tail
        for paradigm, title, encoder, tail in zip(
            out["paradigm"], out["paradigm_title"], out["encoder"], tails, strict=True
        )
    ]
    return out
