"""What a table says of tuned values: whose tuning it is, and whether the base model is the one that was tuned on."""

from __future__ import annotations

from typing import Any

from analysis.cfe.tuning_notes import tuning_notes

WHERE = ("diabetes", "paper", "paper")
TUNED = {"trade_off": 0.005}


def record(base_seed: int, options: dict[str, object] | None = None, **info: object) -> Any:
    params = {
        "dataset": "diabetes", "protocol": "paper", "seeding": "paper", "method": "roar_lime", "base_seed": base_seed,
        "method_options": options or TUNED,
    }  # fmt: skip
    return type("Record", (), {"id": str(base_seed), "params": params, "info": info})()


def test_a_grid_with_the_tuned_base_model_needs_no_word() -> None:
    assert tuning_notes([record(2026), record(2027)]) == {}


def test_a_grid_without_it_says_whose_tuning_it_uses() -> None:
    (note,) = tuning_notes([record(2027)])[WHERE]
    assert note == (
        "ROAR-LIME uses the values that were tuned on base model 2026, which is not one of the base models here."
    )


def test_a_value_of_the_users_own_is_nobodys_tuning() -> None:
    assert tuning_notes([record(2027, {"trade_off": 0.4})]) == {}


def test_another_base_model_is_told_with_the_remedy() -> None:
    found = {"difference": 0.25, "again": None, "by_rule": TUNED, "selected": TUNED}
    (note,) = tuning_notes([record(2026, tuning=found)])[WHERE]
    assert "differs from the tuned one by up to 0.25" in note
    assert "geco-ray tune diabetes" in note


def test_the_notes_stand_under_the_table(kit: Any) -> None:
    from analysis.report import read_numbers

    ledger = kit.FakeLedger()
    base = kit.BaseCell("diabetes", "0" * 8, 2027, "paper")
    from geco_ray.cfe.methods.base import METHODS

    options = METHODS.get("roar_lime").parse_options(TUNED)
    ledger.put(kit.CounterfactualCell(base, "roar_lime", options, "paper"), kit.counterfactual_table(["found"], [1.0]))
    notes = [note for each in read_numbers(ledger) for view in each.views() for note in view.notes]
    assert any("tuned on base model 2026" in note for note in notes)
