"""Degenerate models: the tables say what happened and why, and never "not yet" where everything is done."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from analysis.cfe.figures.trade_off import trade_off_figures
from analysis.cfe.frames import load
from analysis.cfe.tables import table_6
from analysis.cfe.untested import NO_REQUEST, NOT_YET
from analysis.cfe.views import table_6_views
from analysis.geco.frames import load as load_geco
from analysis.geco.tables import accuracy_table, metric_table
from analysis.geco.views import mass_views

from .test_cfe_tables import put
from .test_geco_tables import put as put_scores


def findings(ledger: Any) -> tuple[str, ...]:
    return table_6_views(table_6(load(ledger)))[0].findings


def test_a_method_that_finds_nothing_says_so_with_its_outcomes(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 2026, ["not_found", "budget", "not_found"], {"seed": [None] * 3}, [None] * 3)
    (sentence,) = findings(ledger)
    assert sentence.startswith("KD-tree: none of 3 requests was answered (2 not found; 1 out of budget")
    assert "yet" not in sentence


def test_a_base_model_that_favours_everybody_leaves_nothing_to_ask(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 2026, [], {"seed": []}, [])
    assert findings(ledger) == (NO_REQUEST,)


def test_answers_that_the_base_model_refuses_are_counted(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 2026, ["base_invalid", "not_found"], {"seed": [None, None]}, [None, None])
    (sentence,) = findings(ledger)
    assert sentence.startswith("KD-tree: 1 of 2 requests were answered, and the base model accepts none")


def test_only_what_is_open_is_not_yet(kit: Any) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 2026, ["found"], {}, [1.0])
    assert findings(ledger) == (NOT_YET,)


def test_the_figure_gives_the_same_reason(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = kit.FakeLedger()
    put(kit, ledger, 2026, [], {"seed": []}, [])
    said: list[str] = []
    monkeypatch.setattr("analysis.cfe.figures.trade_off.empty", lambda name, text: said.append(text))
    trade_off_figures(table_6(load(ledger)))
    assert said == [NO_REQUEST]


def test_the_reason_is_the_most_frequent_one(kit: Any) -> None:
    from analysis.cfe.untested import main_reasons

    rows = pd.DataFrame({"method": ["a", "a", "a", "b"], "reason": ["far", "near", "near", None]})
    table = pd.DataFrame({"method": ["b", "a"]})
    found = main_reasons(rows, table, ["method"])
    assert found.isna().tolist() == [True, False]
    assert found[1] == "near"


@pytest.mark.parametrize(
    ("method", "rows", "said"),
    [
        ("saliency", [(0.2, False, None)] * 3, "none of 3 explained sentences counts as correctly classified"),
        (
            "saliency",
            [(None, True, "zero_attribution")] * 2,
            "none of the 2 sentences that count has a value for any method",
        ),
        ("saliency", [(None, True, "zero_attribution")] * 2, "zero_attribution: 2"),
        ("uniform_random", [(0.2, True, None)], "only references were asked for"),
    ],
)
def test_a_model_without_a_mass_accuracy_says_why(kit: Any, method: str, rows: Any, said: str) -> None:
    ledger = kit.FakeLedger()
    put_scores(kit, ledger, 0, rows, method=method)
    frames = load_geco(ledger)
    sentence = mass_views(metric_table(frames), accuracy_table(frames))[0].findings[0]
    assert said in sentence
    assert "yet" not in sentence
