"""What the counterfactual benchmark's tables say, as plain sentences: most robust, closest, one order or several."""

from __future__ import annotations

import pandas as pd

from analysis.aggregate import lines
from analysis.cfe.comparisons import WORDS
from analysis.cfe.ranking import Agreement
from analysis.cfe.untested import untested, why_nothing_was_tested
from analysis.comparison.ranks import Concordance
from analysis.comparison.sentences import by_label, leaders, level_with, standing
from analysis.findings import listed
from analysis.views import number, percent
from geco_ray.table import amount

_LEADS = {"empirical_robustness": "Most robust among base-valid answers", "end_to_end": "Most robust end to end",
          "distance": "Closest"}  # fmt: skip


def table_6_findings(part: pd.DataFrame, pairs: pd.DataFrame) -> tuple[str, ...]:
    """Who leads in robustness, end to end and in distance, ahead of whom, and who answers only some requests.

    ``part`` are rows of Table 6 with labels; ``pairs`` their comparisons (:func:`analysis.cfe.comparisons`).
    """
    if part["empirical_robustness"].isna().all() or part["distance"].isna().all():
        return why_nothing_was_tested(part)
    sentences = [_lead(part, pairs, metric) for metric in WORDS]
    for row in lines(part):
        if row.valid and row.valid_share < 0.95:
            sentences.append(
                f"{row.method_label} has an answer that its base model accepts for only "
                f"{_percent(row.valid_share)} of requests (coverage {_percent(row.coverage)}, base validity "
                f"{_percent(row.base_validity)}); its empirical robustness and distance are over those alone, its "
                "end-to-end robustness over all."
            )
    sentences += untested(part)
    failed, asked = int(part["error"].sum()), int(part["requests"].sum())
    if failed:
        sentences.append(f"{failed:,} of {asked:,} requests ended in an error; they count as not covered.")
    return tuple(sentences)


def _percent(value: float) -> str:
    """Whole percent, 100 for all and 0 for none alone."""
    return whole_percent(value) + " %"


def whole_percent(value: float) -> str:
    """A fraction in whole percent; what is neither 0 nor 1 never shows as one of them: ``>99``, ``<1``."""
    text = f"{100 * value:.0f}"
    if text == "100" and value < 1:
        return ">99"
    return "<1" if text == "0" and value > 0 else text


def _lead(part: pd.DataFrame, pairs: pd.DataFrame, metric: str) -> str:
    words = WORDS[metric]
    rows = {row.method_label: row for row in lines(part)}
    means = {label: float(getattr(row, metric)) for label, row in rows.items()}
    order = leaders(means, words.largest)
    if not order:
        return f"{_LEADS[metric]}: no method has a value."
    best, level = rows[order[0]], level_with(order, means)
    mean = means[order[0]]
    value = f"{percent(mean, words.digits)} %" if words.factor != 1 else number(mean, words.digits)
    sd = getattr(best, f"{metric}_sd")
    spread = "" if pd.isna(sd) else f" ± {number(words.factor * sd, words.digits)}"
    if len(order) == 1:
        return f"{_LEADS[metric]}: {order[0]}, {value}{spread}, the only method with a value."
    labels = {(row.method, row.settings): row.method_label for row in rows.values()}
    of_metric = pairs[pairs["metric"] == metric] if len(pairs) else pairs
    if len(level) > 1:
        return f"{_LEADS[metric]}: {listed(level)} share the best mean, {value}."
    how = standing(order[0], order[1:], by_label(of_metric, labels), words)
    return f"{_LEADS[metric]}: {order[0]}, {value}{spread}; {how}."


def family_findings(agreement: Agreement | None, shown: int = 0) -> tuple[str, ...]:
    """Whether one order of the methods holds for every kind of model change.

    ``shown``: pairs that change places beyond the spread over base models.
    """
    if agreement is None:
        return ("At least two methods and two change families are needed to compare orders.",)
    start = f"Order of {agreement.methods} methods over {agreement.families} change families: "
    if agreement.w is None:
        return (f"{start}all methods are level in every family, so there is no order to compare.",)
    sentence = (
        f"{start}Kendall's W = {agreement.w:.2f} (1 = the same order everywhere); "
        f"{agreement.reversed_pairs} of {amount(agreement.pairs, 'pair', 'pairs')} of methods change places between "
        "some two families"
    )
    if agreement.reversed_pairs:
        by_chance = "any of which may be chance: none does so beyond the spread over base models"
        beyond = f"{shown} of them beyond the spread over base models: no one ranking holds for all kinds of change"
        return (f"{sentence}, {beyond if shown else by_chance}.",)
    if agreement.tied_pairs:
        tied = "1 pair is" if agreement.tied_pairs == 1 else f"{agreement.tied_pairs} pairs are"
        return (f"{sentence}, but {tied} level in some family: the same order apart from ties.",)
    return (f"{sentence}: the same order in every family.",)


def concordance_finding(found: Concordance | None) -> str:
    """Whether data sets order the methods alike, and how far mean ranks must lie apart; empty below two of either."""
    if found is None:
        return ""
    start = f"Over {found.blocks} data sets and {found.names} methods"
    if found.names == 2:
        p = "they are level on every data set" if found.p is None else f"exact sign test p = {found.p:.3g}"
        return f"{start}: {p}."
    if found.w is None or found.p is None or found.chi2 is None:
        return f"{start}: all methods are level on every data set, so there is no order to test."
    assert found.critical_difference is not None
    apart = _apart(found.mean_ranks, found.critical_difference)
    return (
        f"{start}: Friedman chi2 = {found.chi2:.1f}, p = {found.p:.2g}, Kendall's W = {found.w:.2f}. By "
        f"Nemenyi's test mean ranks must differ by {found.critical_difference:.1f} of at most {found.names - 1} ranks, "
        + (f"which tells apart {listed(apart)}." if apart else "which tells no two methods apart.")
    )


def _apart(ranks: dict[str, float], least: float) -> list[str]:
    names = list(ranks)
    pairs = ((one, two) for at, one in enumerate(names) for two in names[at + 1 :])
    return [
        f"{one} ({ranks[one]:.2g}) from {two} ({ranks[two]:.2g})"
        for one, two in pairs
        if ranks[two] - ranks[one] > least
    ]
