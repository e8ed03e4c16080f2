"""What GECOBench's tables say, as plain sentences: who leads, whether decisively, and who is not above chance."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.aggregate import lines
from analysis.findings import bracket, interval, listed, verdict
from analysis.geco.unvalued import why_no_value
from analysis.intervals import lead

# Uniform random knows nothing and Pattern Variant looks at the data alone: neither explains a model.
REFERENCES = frozenset({"uniform_random", "pattern_variant"})
REFERENCE_NOTE = (
    "References, which explain no model: Uniform random draws its attributions by chance; Pattern Variant looks up how "
    "each word goes together with the labels (their covariance in the data) without looking at a model."
)


def reference_labels(part: pd.DataFrame) -> set[str]:
    """The labels of the methods that explain no model and are there to compare with."""
    return set(part.loc[part["method"].isin(REFERENCES), "method_label"])


def mass_findings(part: pd.DataFrame, models: Sequence[str]) -> tuple[str, ...]:
    """For each model: which attribution method leads, whether decisively, and which are not above chance."""
    sentences = []
    for model in models:
        rows = lines(part[part["model_label"] == model])
        own = {row.method_label: interval(row.mean, row.low, row.high, row.mean_n) for row in rows}
        judged = {row.method_label: own[row.method_label] for row in rows if row.method not in REFERENCES}
        best = lead(judged)
        if best is None:
            sentences.append(f"{model}: {why_no_value(part[part['model_label'] == model], REFERENCES)}.")
            continue
        value = bracket(best.interval, 2)
        if len(judged) == 1:
            sentence = f"{model}: {best.best}, the only method that explains the model, has mass accuracy {value}."
        else:
            sentence = (
                f"{model}: among the methods that explain the model, {best.best} has the highest mass accuracy, "
                f"{value}{verdict(best)}."
            )
        dull = [
            row.method_label
            for row in rows
            if row.method_label in judged and pd.notna(row.low) and pd.notna(row.chance) and row.low <= row.chance
        ]
        if dull:
            sentence += f" Not above chance: {listed(dull)}."
        sentences.append(sentence)
    return tuple(sentences)
