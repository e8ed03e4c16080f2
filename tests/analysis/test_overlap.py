"""The overlap of broken counterfactuals, by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from analysis.cfe.overlap import COLUMNS, family_overlap


def validity(survived: dict[str, list[int]], pairs: int = 2) -> pd.DataFrame:
    rows = [
        {
            "dataset": "d", "method": "m", "protocol": "paper", "seeding": "paper", "settings": "{}", "base_seed": 2026,
            "family": family, "factual_id": number, "pairs": pairs, "survived": count, "variants": pairs,
        }
        for family, counts in survived.items()
        for number, count in enumerate(counts)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_overlap_is_broken_by_both_over_broken_by_either() -> None:
    table = family_overlap(validity({"seed": [0, 1, 2, 2], "bootstrap": [1, 2, 0, 2]}))
    (row,) = table.to_dict("records")
    assert (row["family"], row["other_family"]) == ("bootstrap", "seed")
    assert (row["counterfactuals"], row["broken"], row["other_broken"]) == (4, 2, 2)
    assert row["overlap"] == pytest.approx(1 / 3)
    assert row["chance_overlap"] == pytest.approx(0.25 / 0.75)


def test_a_counterfactual_without_pairs_is_not_counted_and_nothing_broken_is_null() -> None:
    frame = validity({"seed": [2, 2], "bootstrap": [2, 2]})
    frame.loc[frame["factual_id"] == 1, "pairs"] = 0
    (row,) = family_overlap(frame).to_dict("records")
    assert row["counterfactuals"] == 1
    assert pd.isna(row["overlap"])


def test_no_validity_is_an_empty_table() -> None:
    assert list(family_overlap(pd.DataFrame()).columns) == COLUMNS
