"""Trained models are paired with the one run of a reference that is alike in all but paradigm and seed."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.geco.attributions.completeness import completeness_table
from analysis.geco.attributions.denominators import denominator_table
from analysis.geco.attributions.relative import reference_paradigms, relative_table, with_reference
from geco_ray.geco.paradigms.base import PARADIGMS

REFERENCES = {"made_up"}


def _rows(paradigm: str, seed: int | None, values: list[float | None], **change: Any) -> pd.DataFrame:
    options = {"method_options": {"n_steps": change.get("n_steps", 5)}, "data": "f", "paradigm_options": {}}
    return pd.DataFrame(
        {
            "cell": f"{paradigm}{seed}{change}",
            "dataset": change.get("dataset", "d"),
            "protocol": change.get("protocol", "corrected"),
            "encoder": change.get("encoder", "mini"),
            "tokenizer": change.get("tokenizer", "abcd"),
            "paradigm": paradigm,
            "method": change.get("method", "lime"),
            "seed": pd.array([seed] * len(values), "Int64"),
            "settings": json.dumps(options, sort_keys=True),
            "row": range(len(values)),
            "sentence_idx": [row // 2 for row in range(len(values))],
            "correct": change.get("correct", True),
            "mass_accuracy": values,
        }
    )


def _table(*parts: pd.DataFrame) -> pd.DataFrame:
    frames: Any = SimpleNamespace(score=pd.concat(parts, ignore_index=True))
    return relative_table(frames, references=REFERENCES)


def test_seeds_are_paired_with_the_one_run_row_by_row() -> None:
    reference = _rows("made_up", None, [0.1, 0.2, 0.0, None])
    table = _table(reference, *(_rows("bert_c", seed, [0.2, 0.2 * (seed + 1), 0.5, 0.5]) for seed in (0, 1)))
    (row,) = table.to_dict("records")
    assert (row["reference"], row["reference_encoder"], row["pairs"]) == ("made_up", "mini", 6)
    assert row["relative_mass_accuracy_mean"] == pytest.approx(((2 + 1) / 2 + (2 + 2) / 2) / 2)
    assert row["log_relative_mass_accuracy_mean"] == pytest.approx((np.log(2) / 2 + np.log(2)) / 2)
    assert row["relative_mass_accuracy_undefined"] == 2  # a reference of 0, once a seed; an undefined one is no pair
    assert row["relative_mass_accuracy_mean_n"] == 2
    assert np.isnan(row["log_ratio_minus_1_mean"])


@pytest.mark.parametrize(
    "change", [{"dataset": "e"}, {"protocol": "paper"}, {"encoder": "maxi"}, {"method": "saliency"}, {"n_steps": 6}]
)
def test_what_differs_is_never_paired(change: dict[str, Any]) -> None:
    assert _table(_rows("made_up", None, [0.1]), _rows("bert_c", 0, [0.2], **change)).empty
    assert len(_table(_rows("made_up", None, [0.1], **change), _rows("bert_c", 0, [0.2], **change))) == 1


def test_a_model_of_a_tokenizer_is_paired_with_every_encoder_that_has_it() -> None:
    references = [
        _rows("made_up", None, [mass], encoder=name, tokenizer=tokenizer)
        for name, tokenizer, mass in (("mini", "abcd", 0.1), ("maxi", "abcd", 0.2), ("other", "efgh", 0.4))
    ]
    table = _table(*references, _rows("ola_cea", 0, [0.4], encoder="tokenizer abcd"))
    assert dict(zip(table["reference_encoder"], table["relative_mass_accuracy_mean"], strict=True)) == {
        "maxi": pytest.approx(2.0),
        "mini": pytest.approx(4.0),
    }


def test_the_models_rows_decide_what_counts_and_not_the_references() -> None:
    reference = _rows("made_up", None, [0.1, 0.1], correct=[False, True])
    (row,) = _table(reference, _rows("a", 0, [0.2, 0.3], correct=[True, False])).to_dict("records")
    assert (row["pairs"], row["relative_mass_accuracy_mean"]) == (1, pytest.approx(2.0))


def test_the_published_forms_belong_to_the_papers_protocol() -> None:
    parts = [
        _rows(name, seed, [mass], protocol="paper") for name, seed, mass in (("made_up", None, 0.2), ("a", 0, 0.3))
    ]
    (row,) = _table(*parts).to_dict("records")
    assert row["log_ratio_minus_1_mean"] == pytest.approx(np.log(0.5))
    assert row["log_ratio_eps_median"] == pytest.approx(np.log(1.5 + 1e-6))


def test_what_is_a_reference_is_asked_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PARADIGMS.get("bert_c").target, "is_reference", True)
    assert "bert_c" in reference_paradigms()
    score = pd.concat([_rows("bert_c", None, [0.1]), _rows("ola_cea", 0, [0.3])], ignore_index=True)
    assert with_reference(score)["reference_mass_accuracy"].tolist() == [0.1]


def test_each_rule_has_its_denominator() -> None:
    rows = [_rows("a", 0, [0.1] * 4, correct=[True, True, False, True]), _rows("b", 0, [0.1] * 4)]
    frames: Any = SimpleNamespace(score=pd.concat([*rows, rows[0].assign(method="saliency")], ignore_index=True))
    table = denominator_table(frames).set_index(["paradigm", "rule"])
    counts = {key: (row["rows"], row["all_rows"], row["sentences"]) for key, row in table.iterrows()}
    assert counts["a", "none"] == (4, 4, 2)
    assert counts["a", "per_model_row"] == (3, 4, 2)
    assert counts["a", "per_model_sentence"] == (2, 4, 1)
    assert counts["b", "per_model_sentence"] == (4, 4, 2)
    assert counts["b", "all_models_sentence"] == (2, 4, 1)


def test_gaps_are_shares_of_what_is_explained() -> None:
    score = _rows("a", 0, [0.1] * 4).assign(
        completeness_gap=[0.1, -0.2, 0.0, 0.3], explained_change=[1.0, -4.0, 2.0, 0.0],
        special_share=[0.5, 0.1, None, 0.3], prompt_share=None,
    )  # fmt: skip
    frames: Any = SimpleNamespace(score=score)
    (row,) = completeness_table(frames).to_dict("records")
    assert (row["median_gap"], row["worst_gap"]) == (pytest.approx(0.05), pytest.approx(0.1))
    assert (row["rows"], row["without_change"], row["special_share"]) == (3, 1, pytest.approx(0.3))
    assert np.isnan(row["prompt_share"])
