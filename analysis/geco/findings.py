"""What GECOBench's tables say, as plain sentences: who leads, ahead of whom, who is not above chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from analysis.aggregate import lines
from analysis.comparison.sentences import Words, by_label, leaders, level_with, standing
from analysis.findings import listed
from analysis.geco.unvalued import why_no_value
from analysis.styles import Names
from analysis.views import spread

REFERENCE_NOTE = (
    "References are methods that say they explain no model: they draw at chance, or look at the data alone (how each "
    "word goes together with the labels)."
)
WORDS = Words("ahead of", ("seed", "seeds"), "source sentences", 2)


def reference_labels(part: pd.DataFrame) -> set[str]:
    """The labels of the methods that explain no model and are there to compare with."""
    return set(part.loc[is_reference(part), "method_label"])


def is_reference(part: pd.DataFrame) -> pd.Series:
    """A flag per row: whether the method says that it explains no model."""
    return part["method_aims"].map(lambda aims: aims is False).astype(bool)


def references(names: Names, methods: Iterable[str]) -> frozenset[str]:
    """Those of ``methods`` that say they explain no model."""
    return frozenset(name for name in set(methods) if names.profile(name).aims is False)


def mass_findings(part: pd.DataFrame, models: Sequence[str], pairs: pd.DataFrame) -> tuple[str, ...]:
    """For each model: which attribution method leads, ahead of whom, and which are not shown to be above chance.

    ``part`` are labelled rows of the mass accuracy's table; ``pairs`` the comparisons of its methods.
    """
    sentences = []
    for model in models:
        own = part[part["model_label"] == model]
        rows = {row.method_label: row for row in lines(own) if row.method_aims is not False}
        means = {label: float(row.mean) for label, row in rows.items()}
        order = leaders(means)
        if not order:
            aside = set(own.loc[is_reference(own), "method"])
            sentences.append(f"{model}: {why_no_value(own, aside)}.")
            continue
        best, level = rows[order[0]], level_with(order, means)
        value, labels = spread(best.mean, best.mean_sd, best.mean_n, 2), _labels(own)
        if len(rows) == 1:
            sentence = f"{model}: {order[0]}, the only method that explains the model, has mass accuracy {value}."
        elif len(level) > 1:
            sentence = f"{model}: {listed(level)} share the highest mean mass accuracy, {value}."
        else:
            how = standing(order[0], order[1:], by_label(_of(own, pairs), labels), WORDS)
            sentence = f"{model}: the highest mean mass accuracy is that of {order[0]}, {value}" + (
                f"; {how}." if how else ", the only method with a value."
            )
        dull = [label for label, row in rows.items() if not_shown_above_chance(row)]
        if dull:
            sentence += f" Not shown to be above chance: {listed(dull)}."
        sentences.append(sentence)
    return tuple(sentences)


def not_shown_above_chance(row: object) -> bool:
    """Whether a one-sided t test over seeds finds no mean above chance at 5 %; never said below two seeds."""
    from scipy.stats import t

    mean, sd, count, chance = (float(getattr(row, name)) for name in ("mean", "mean_sd", "mean_n", "chance"))
    if count < 2 or np.isnan(mean) or np.isnan(chance):
        return False
    if sd < 1e-12:
        return mean <= chance
    return float(t.sf((mean - chance) / (sd / np.sqrt(count)), count - 1)) > 0.05


def _labels(own: pd.DataFrame) -> dict[tuple[str, str], str]:
    return {(row.method, row.settings): row.method_label for row in lines(own)}


def _of(own: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """The comparisons on the models of ``own``."""
    keys = ["dataset", "encoder", "paradigm", "protocol"]
    return pairs.merge(own[keys].drop_duplicates(), on=keys) if len(pairs) else pairs
