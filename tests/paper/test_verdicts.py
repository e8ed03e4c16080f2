"""The rule by which a number counts as reproduced, the reversals beyond noise, and the 23 checks on changed results."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import paper_claims
import published_tables
from paper_results import Results
from publish_counterfactuals import constants
from ranking_beyond_noise import reversals
from verdicts import Value, judge, judge_bound

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize(
    ("paper", "ours", "sd", "holds"),
    [
        ("93.1", 93.14, None, True),  # equal at the printed digits
        ("93.1", 93.2, None, False),
        ("93.1", 93.9, 1.0, True),  # within one standard deviation and 1.5 points
        ("93.1", 94.7, 5.0, False),  # more than 1.5 points
        ("93.1", 93.9, 0.5, False),  # more than one standard deviation
        ("11", 11.49, None, True),
        ("11", float("nan"), 1.0, False),
    ],
)
def test_when_a_number_is_reproduced(paper: str, ours: float, sd: float | None, holds: bool) -> None:
    assert Value(paper, ours, sd).holds is holds


def test_a_distance_is_judged_in_percent() -> None:
    assert Value("0.959", 0.970, 0.021, relative=True).holds
    assert not Value("0.959", 0.980, 0.021, relative=True).holds


def test_a_verdict_says_how_far_it_is_off() -> None:
    assert str(judge([Value("93.1", 89.1, 2.0)])) == (
        "not reproduced: 89.1 for 93.1 (-4.00 points, 2.0 standard deviations)"
    )


def test_bounds_are_rounded_as_the_paper_prints_them() -> None:
    assert judge_bound("95", 94.6).word == "reproduced"
    assert judge_bound("95", 94.4).word == "not reproduced"
    assert judge_bound("91", 91.0, strict=True).word == "not reproduced"


def two_methods(gap: float, noise: float) -> pd.DataFrame:
    rng, rows = np.random.default_rng(0), []
    for family, sign in (("seed", 1), ("deletion", -1)):
        for seed in range(5):
            values = {"a": 0.5 + sign * gap + noise * rng.standard_normal(), "b": 0.5}
            rows += [
                {"dataset": "x", "family": family, "base_seed": seed, "method": m, "empirical_robustness": v}
                for m, v in values.items()
            ]
    return pd.DataFrame(rows)


def test_a_reversal_counts_only_beyond_the_spread_of_the_base_models() -> None:
    assert reversals(two_methods(gap=0.1, noise=0.01)) == [("x", "a", "b")]
    assert reversals(two_methods(gap=0.01, noise=0.1)) == []


@pytest.fixture(scope="module")
def results() -> Results:
    """The published tables."""

    def table(name: str) -> pd.DataFrame:
        return pd.read_csv(RESULTS / f"counterfactuals_{name}.csv")

    changes = table("change_families")
    shares = changes[changes["dataset"] != "macro average"].assign(base_seed=2026)
    shares = pd.concat([shares, shares.assign(base_seed=2027)])
    radii = pd.DataFrame({"dataset": ["breast_cancer"] * 2, "radius": [0.0075, 0.0077]})
    return Results(
        table("table_6"), table("table_6_by_seed"), table("families"), table("families_by_seed"),
        table("family_overlap"), changes, table("family_ranks"), radii,
        shares.assign(hard_disagreement=100 * shares["hard_disagreement"]), None, constants(),
    )  # fmt: skip


def test_the_page_says_what_the_published_tables_give(results: Results) -> None:
    page = (RESULTS / "counterfactuals.md").read_text(encoding="utf-8")
    assert published_tables.main_table(results.table) in page
    assert published_tables.family_table(results.families) in page
    elsewhere = {3, 4, 5, 17, 19}  # computed from what is not in these tables
    for check in paper_claims.checks(results):
        if check.number not in elsewhere:
            line = f"| {check.number} | {check.claim} | {check.paper} | {check.here} | {check.verdict} |"
            assert line in page, check.number


def test_there_are_23_checks_in_order(results: Results) -> None:
    assert [check.number for check in paper_claims.checks(results)] == list(range(1, 24))


def test_a_check_follows_the_numbers(results: Results) -> None:
    assert paper_claims.roar_lime_on_wine(results).verdict.word == "reproduced"
    table = results.table.copy()
    wine = (table["dataset"] == "wine_quality") & (table["method"] == "roar_lime")
    table.loc[wine, "base_validity"] -= 0.1
    found = paper_claims.roar_lime_on_wine(replace(results, table=table))
    assert found.verdict.word == "not reproduced"
    assert "-10" in found.verdict.why


def test_what_was_not_measured_is_not_run(results: Results) -> None:
    assert paper_claims.apas_anew(results).verdict.word == "not run"
    one = pd.DataFrame({"dataset": ["diabetes"], "requests": [5], "returned": [0]})
    assert paper_claims.apas_anew(replace(results, diagnostic=one)).verdict.word == "not run"
    all_four = pd.DataFrame({"dataset": list(paper_claims.DATASETS), "requests": 5, "returned": [0, 0, 1, 0]})
    assert str(paper_claims.apas_anew(replace(results, diagnostic=all_four)).verdict) == (
        "not reproduced: 1 requests got one"
    )


def test_a_constant_that_changes_is_seen(results: Results) -> None:
    assert paper_claims.constants(results).verdict.word == "reproduced"
    other = results.constants | {"RobX samples": 999}
    assert str(paper_claims.constants(replace(results, constants=other)).verdict) == "not reproduced: RobX samples"
