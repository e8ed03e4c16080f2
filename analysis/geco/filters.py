"""Which explained rows count as "correctly classified"; the rule decides the denominator, so tables say which it is."""

from __future__ import annotations

from typing import Literal, get_args

import pandas as pd

from geco_ray.errors import unknown_name

Rule = Literal["none", "per_model_row", "per_model_sentence", "all_models_sentence"]
_MODEL = ("dataset", "protocol", "encoder", "paradigm", "settings", "method", "seed")


def counted_rows(score: pd.DataFrame, rule: Rule) -> pd.Series:
    """A flag per row of ``score``.

    ``none``: every row. ``per_model_row``: the model classified the row correctly (the headline's rule).
    ``per_model_sentence``: it classified all forms of the source sentence correctly. ``all_models_sentence``: every
    model and seed of the dataset and protocol did, the zero-shot model included (GECOBench's published figures); one
    weak model then empties everybody's rows.

    Raises:
        UserError: no such rule.
    """
    if rule not in get_args(Rule):
        raise unknown_name("rule for correct rows", rule, get_args(Rule))
    correct = score["correct"].astype("boolean").fillna(False).astype(bool)
    if rule == "none":
        return pd.Series(True, index=score.index)
    if rule == "per_model_row":
        return correct
    keys = ["dataset", "protocol"] if rule == "all_models_sentence" else list(_MODEL)
    sentence = [score[key] for key in (*keys, "sentence_idx")]
    return correct.groupby(sentence, dropna=False, sort=False).transform("all").astype(bool)
