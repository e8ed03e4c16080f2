"""A card is read as it is written, and every slip in it has its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from geco_ray.cfe.data.cards import Card, read_card
from geco_ray.errors import UserError

GOOD = 'name: loans\ntarget: paid\nfavourable: ["yes"]\ndrop: [id]\nranges: {income: [0, 200]}\nrows: 12\n'


def read(folder: Path, text: str) -> Card:
    path = folder / "loans.yaml"
    path.write_text(text, encoding="utf-8")
    return read_card(path)


def test_a_good_card_is_good(tmp_path: Path) -> None:
    card = read(tmp_path, GOOD)
    assert (card.favourable, card.drop, card.ranges, card.rows) == (("yes",), ("id",), {"income": (0.0, 200.0)}, 12)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("rows: 12", "drop: [debt]", 6, "the key 'drop' is given twice"),
        ("drop:", "dorp:", 4, "key 'dorp' Did you mean 'drop'"),
        ("drop: [id]", "drop: id", 4, "key 'drop'"),
        ("drop: [id]", "drop:\n  - id\n  - 7", 6, "key 'drop.1' valid string"),
        ("target: paid", "target: null", 2, "key 'target' valid string"),
        ("target: paid", "target: 7", 2, "key 'target' valid string"),
        ("target: paid", "target: col #1", 2, "takes '#1' for a comment"),
        ('["yes"]', "[~]", 3, "reads '~' as nothing"),
        ('["yes"]', "[[a]]", 3, "key 'favourable.0' valid string"),
        ('["yes"]', "yes", 3, "key 'favourable'"),
        ("[0, 200]", "[0, 1:30]", 5, "unusual"),
        ("rows: 12", "rows: 1_000", 6, "unusual"),
        ("rows: 12", "title: *x", 6, "cards have no anchors"),
        ("rows: 12", "title: a: b", 6, "quotes"),
        ("name: loans", "name: loans\u0000", 1, "control characters"),
    ],
)
def test_a_slip_in_a_card_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'loans.yaml'}:{line}: ")
    assert all(word in str(caught.value) for word in words.split())


@pytest.mark.parametrize(
    ("written", "value"),
    [("01", "01"), ("1", "1"), ("1.0", "1.0"), ("TRUE", "TRUE"), ("true", "True"), ("yes", "yes"), ("None", "None")],
)
def test_values_of_the_target_are_taken_as_they_are_written(tmp_path: Path, written: str, value: str) -> None:
    assert read(tmp_path, GOOD.replace('"yes"', written)).favourable == (value,)
