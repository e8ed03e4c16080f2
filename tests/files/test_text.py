"""The one rule for comparing texts: normal form and white space do not count, all else does."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from geco_ray.files.text import compare_key, first_repeated, same_text

FORMS = ("NFC", "NFD")


@given(st.text(), st.sampled_from(FORMS), st.sampled_from(FORMS))
def test_the_normal_form_does_not_count(text: str, one: str, other: str) -> None:
    assert same_text(unicodedata.normalize(one, text), unicodedata.normalize(other, text))


@given(st.text())
def test_a_key_is_its_own_key(text: str) -> None:
    assert compare_key(compare_key(text)) == compare_key(text) == compare_key(f" {text}\n")


@given(st.integers(1, 99))
def test_leading_zeros_and_case_count(number: int) -> None:
    assert not same_text(str(number), f"0{number}")
    assert not same_text("TRUE", "True")


def test_compatible_characters_are_not_the_same() -> None:
    assert not same_text("ﬁne", "fine")  # a ligature: NFKC would join them
    assert not same_text("m²", "m2")


def test_a_repeated_text_is_found_in_either_form() -> None:
    assert first_repeated(["Größe", "Alter", "Gro\u0308ße"]) == (0, 2)
    assert first_repeated(["a", "A", "a "]) == (0, 2)
    assert first_repeated(["1", "01"]) is None
