"""What the counterfactual benchmark's tables say, as plain sentences: most robust, closest, one order or several."""

from __future__ import annotations

import pandas as pd

from analysis.aggregate import lines
from analysis.cfe.ranking import Agreement
from analysis.cfe.untested import untested, why_nothing_was_tested
from analysis.findings import bracket, interval, verdict
from analysis.intervals import lead


def table_6_findings(part: pd.DataFrame) -> tuple[str, ...]:
    """Which method is most robust and which is closest, whether decisively, and who answers only some requests."""
    rows = lines(part)
    robust, near = (
        {
            row.method_label: interval(*(getattr(row, f"{metric}{end}") for end in ("", "_low", "_high", "_n")))
            for row in rows
        }
        for metric in ("empirical_robustness", "distance")
    )
    most, closest = lead(robust), lead(near, largest=False)
    if most is None or closest is None:
        return why_nothing_was_tested(part)
    sentences = [
        f"Most robust: {most.best}, {bracket(most.interval, 1, 100)} %{verdict(most)}.",
        f"Closest: {closest.best}, {bracket(closest.interval, 2)}{verdict(closest)}.",
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
        return (f"{sentence}. These are means: whether the spread of the base models explains it is not tested here.",)
    if agreement.tied_pairs:
        tied = "1 pair is" if agreement.tied_pairs == 1 else f"{agreement.tied_pairs} pairs are"
        return (f"{sentence}, but {tied} level in some family: the same order apart from ties.",)
    return (f"{sentence}: the same order in every family.",)
