"""The figure of the co-occurrence bias: same numbers, same bytes; undefined and foreign values do not break it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable

import pandas as pd
import pytest

from analysis.geco.figures.bias import bias_figure


def table(shares: dict[tuple[str, str], list[float | None]], labels: tuple[str, ...], scope: str) -> pd.DataFrame:
    records = [
        {"task": task, "scope": scope, "reading": reading, "label": label, "bias": share, "ideal": 1 / len(labels)}
        for (task, reading), values in shares.items()
        for label, share in zip(labels, values, strict=True)
    ]
    return pd.DataFrame(records)


PAIR = table(
    {("binary_gender_all", "paper"): [0.5, 0.5], ("binary_gender_subj", "literal"): [0.44, 0.56]},
    ("female", "male"),
    "train+test",
)


def test_the_same_numbers_give_the_same_bytes() -> None:
    first, again = bias_figure(PAIR), bias_figure(PAIR.copy())
    assert first.png.startswith(b"\x89PNG")
    assert (first.png, first.svg) == (again.png, again.svg)
    ET.fromstring(first.svg)


def test_the_words_for_people_who_cannot_see_it_name_the_largest_share() -> None:
    alt = bias_figure(PAIR).alt
    assert "Binary, subject only (D_S): male 56.0 % in reading literal" in alt


def test_only_the_asked_scope_is_drawn_and_none_says_so() -> None:
    both = pd.concat([PAIR, table({("binary_gender_all", "paper"): [0.1, 0.9]}, ("female", "male"), "train")])
    assert "90.0 %" in bias_figure(both, "train").alt
    assert bias_figure(PAIR, "train").alt == "No co-occurrence bias was computed for train."


@pytest.mark.parametrize("values", [[None, None], [0.3, 0.7]], ids=["undefined", "defined"])
def test_undefined_shares_and_classes_of_another_attribute_can_be_drawn(values: list[float | None]) -> None:
    picture = bias_figure(table({("my_ages", "paper"): values}, ("young", "old"), "train+test"))
    assert picture.png.startswith(b"\x89PNG")
    assert ("my_ages" in picture.alt) == (values[0] is not None)


def test_drawing_imports_no_torch_and_no_ray(assert_imports_nothing: Callable[..., str]) -> None:
    assert_imports_nothing("import analysis.geco.figures.bias", ["torch", "ray", "matplotlib.pyplot"])
