"""What the tables say, as plain sentences computed from them, "not decisive" included.

A lead counts as decisive when the 95 % bootstrap interval of no other method overlaps with the leader's. The interval
rests on the seeds alone and is too narrow when they are few, so a decisive lead is a minimum, not a proof.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.aggregate import lines
from analysis.cfe.ranking import Agreement
from analysis.cfe.untested import untested, why_nothing_was_tested
from analysis.geco.unvalued import why_no_value
from analysis.intervals import FEWEST_SEEDS, Interval, Lead, lead

# Uniform random knows nothing and Pattern Variant looks at the data alone: neither explains a model.
REFERENCES = frozenset({"uniform_random", "pattern_variant"})
REFERENCE_NOTE = (
    "References, which explain no model: Uniform random draws its attributions by chance; Pattern Variant looks up how "
    "each word goes together with the labels (their covariance in the data) without looking at a model."
)
INTERVALS = (
    "Brackets: 95 % bootstrap interval of the mean over seeds (10,000 resamples); with few seeds it is too narrow. "
    f"A lead is called decisive when it rests on at least {FEWEST_SEEDS} seeds and no other method's interval "
    "overlaps with the leader's."
)


def reference_labels(part: pd.DataFrame) -> set[str]:
    """The labels of the methods that explain no model and are there to compare with."""
    return set(part.loc[part["method"].isin(REFERENCES), "method_label"])


def mass_findings(part: pd.DataFrame, models: Sequence[str]) -> tuple[str, ...]:
    """For each model: which attribution method leads, whether decisively, and which are not above chance."""
    sentences = []
    for model in models:
        rows = lines(part[part["model_label"] == model])
        own = {row.method_label: _interval(row.mean, row.low, row.high, row.mean_n) for row in rows}
        judged = {row.method_label: own[row.method_label] for row in rows if row.method not in REFERENCES}
        best = lead(judged)
        if best is None:
            sentences.append(f"{model}: {why_no_value(part[part['model_label'] == model], REFERENCES)}.")
            continue
        value = _bracket(best.interval, 2)
        if len(judged) == 1:
            sentence = f"{model}: {best.best}, the only method that explains the model, has mass accuracy {value}."
        else:
            sentence = (
                f"{model}: among the methods that explain the model, {best.best} has the highest mass accuracy, "
                f"{value}{_verdict(best)}."
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


def table_6_findings(part: pd.DataFrame) -> tuple[str, ...]:
    """Which method is most robust and which is closest, whether decisively, and who answers only some requests."""
    rows = lines(part)
    robust = {row.method_label: _interval(row.robustness, row.robustness_low, row.robustness_high, row.robustness_n)
              for row in rows}  # fmt: skip
    near = {
        row.method_label: _interval(row.distance, row.distance_low, row.distance_high, row.distance_n) for row in rows
    }
    most, closest = lead(robust), lead(near, largest=False)
    if most is None or closest is None:
        return why_nothing_was_tested(part)
    sentences = [
        f"Most robust: {most.best}, {_bracket(most.interval, 1, 100)} %{_verdict(most)}.",
        f"Closest: {closest.best}, {_bracket(closest.interval, 2)}{_verdict(closest)}.",
    ]
    if most.compared > 1:
        alike = most.best == closest.best
        sentences.append(f"{most.best} is both." if alike else "No method is both the most robust and the closest.")
    for row in rows:
        if row.valid and row.valid_share < 0.95:
            share = f"{100 * row.valid_share:.0f} %"
            sentences.append(
                f"{row.method_label} has an answer that its base model accepts for only {share} of requests; "
                "its robustness is over those alone, its end-to-end robustness over all."
            )
    sentences += untested(part)
    failed, asked = int(part["error"].sum()), int(part["requests"].sum())
    if failed:
        sentences.append(f"{failed:,} of {asked:,} requests ended in an error; they count as not covered.")
    return tuple(sentences)


def family_findings(agreement: Agreement | None) -> tuple[str, ...]:
    """Whether one order of the methods holds for every kind of model change."""
    if agreement is None:
        return ("At least two methods and two change families are needed to compare orders.",)
    sentence = (
        f"Order of {agreement.methods} methods over {agreement.families} change families: Kendall's W = "
        f"{agreement.w:.2f} (1 = the same order everywhere); {agreement.reversed_pairs} of {agreement.pairs} pairs of "
        "methods change places between some two families"
    )
    if agreement.reversed_pairs:
        return (f"{sentence}: there is no one ranking for all kinds of change.",)
    if agreement.tied_pairs:
        tied = "1 pair is" if agreement.tied_pairs == 1 else f"{agreement.tied_pairs} pairs are"
        return (f"{sentence}, but {tied} level in some family: the same order apart from ties.",)
    return (f"{sentence}: the same order in every family.",)


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b`` or ``a, b and c``."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _interval(mean: float, low: float, high: float, n: int) -> Interval:
    def known(value: float) -> float | None:
        return None if pd.isna(value) else float(value)

    return Interval(known(mean), known(low), known(high), int(n))


def _bracket(interval: Interval, digits: int, factor: float = 1.0) -> str:
    text = f"{factor * (interval.mean or 0.0):.{digits}f}"
    if interval.low is None or interval.high is None:
        return text
    return f"{text} [{factor * interval.low:.{digits}f}, {factor * interval.high:.{digits}f}]"


def _verdict(best: Lead) -> str:
    if best.compared == 1:
        return ", the only method with a value"
    if best.decisive:
        return ", a decisive lead"
    if best.interval.n < FEWEST_SEEDS:
        return f"; not decisive, n={best.interval.n} is too few"
    those = "that" if len(best.rivals) == 1 else "those"
    return f"; not decisive, its interval overlaps with {those} of {listed(best.rivals)}"
