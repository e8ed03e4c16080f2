"""From tokens to words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geco_ray.geco.tokens import TokenRow
from geco_ray.geco.words import normalize_words, outside_shares, token_to_word, truth_share


def _tokens(words: list[int], count: int) -> TokenRow:
    return TokenRow(np.zeros(len(words), np.int64), np.array(words, np.int64), count)


def test_absolute_then_share_of_all_tokens_then_sum_over_pieces() -> None:
    # [CLS] bench ##mark (blank) he [SEP]: |.| sums to 10, so bench + ##mark has 4/10 although its plain sum is -2.
    magnitude, signed = token_to_word([[2.0, 1.0, -3.0, 3.0, 1.0]], [_tokens([-1, 0, 0, 2, -1], 3)])
    assert magnitude[0].tolist() == pytest.approx([0.4, 0.0, 0.3])
    assert signed[0].tolist() == pytest.approx([-2.0, 0.0, 3.0])


def test_a_repeated_piece_shifts_nothing() -> None:
    # "i.e." has the piece "." twice; a table keyed by piece and word would lose one and shift the rest.
    magnitude, _ = token_to_word([[0, 1, 1, 1, 1, 4, 0]], [_tokens([-1, 0, 0, 0, 0, 1, -1], 2)])
    assert magnitude[0].tolist() == pytest.approx([0.5, 0.5])


def test_all_zero_stays_zero_and_is_not_nan() -> None:
    magnitude, signed = token_to_word([[0.0, 0.0, 0.0]], [_tokens([-1, 0, -1], 1)])
    assert magnitude[0].tolist() == signed[0].tolist() == [0.0]
    assert normalize_words([[0.0, 0.0], [-1.0, 3.0]])[0].tolist() == [0.0, 0.0]
    assert normalize_words([[0.0, 0.0], [-1.0, 3.0]])[1].tolist() == [0.25, 0.75]


def test_a_sentence_with_a_score_that_is_not_finite_is_not_finite_wherever_it_stands() -> None:
    for bad in (np.nan, np.inf):
        magnitude, _ = token_to_word(
            [[bad, 1.0, 3.0], [1.0, 1.0, 0.0]], [_tokens([-1, 0, 1], 2), _tokens([-1, 0, 1], 2)]
        )
        assert np.isnan(magnitude[0]).all()
        assert magnitude[1].tolist() == [0.5, 0.0]
        assert np.isnan(normalize_words([[bad, 1.0]])[0]).all()


def test_what_is_outside_the_words_is_special_or_a_prompt() -> None:
    # [CLS] (1) a prompt's two pieces (7, 8) a word [SEP] (2): of 10, 1 + 2 on special tokens and 3 on the prompt
    row = TokenRow(np.array([1, 7, 8, 9, 2]), np.array([-1, -1, -2, 0, -1]), 1)
    assert outside_shares([[1.0, -2.0, 1.0, 4.0, 2.0]], [row], {1, 2}) == ([pytest.approx(0.3)], [pytest.approx(0.3)])
    assert outside_shares([[0.0] * 5, [np.nan] * 5], [row, row], {1, 2}) == ([None, None], [None, None])


def test_chance_counts_pieces_or_words_as_the_method_scores() -> None:
    row = _tokens([-1, 0, 0, 0, 2, -1], 3)  # a word of three pieces, a blank one, and one of one piece
    assert truth_share(row, [1, 0, 0], "token") == pytest.approx(3 / 4)
    assert truth_share(row, [1, 0, 0], "word") == pytest.approx(1 / 2)
    assert truth_share(_tokens([-1, -1], 1), [1], "token") is None


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(0, 5))
def test_chance_is_the_mean_over_all_orders_of_the_scores(pieces: list[int], place: int) -> None:
    words = [index for index, number in enumerate(pieces) for _ in range(number)]
    row, truth = _tokens([-1, *words, -1], len(pieces)), [int(index == place) for index in range(len(pieces))]
    scores = np.random.default_rng(0).random(len(words))
    turned = [np.concatenate([[0.5], np.roll(scores, by), [0.5]]) for by in range(len(words))]
    shares = [
        float((magnitude * truth).sum() / magnitude.sum())
        for magnitude in token_to_word(turned, [row] * len(turned))[0]
    ]
    chance = truth_share(row, truth, "token")
    assert (chance is None) == (not words)
    assert chance is None or np.mean(shares) == pytest.approx(chance)


def test_no_rows_and_wrong_lengths() -> None:
    assert token_to_word([], []) == ([], [])
    with pytest.raises(ValueError, match="differ in number"):
        token_to_word([[1.0]], [_tokens([-1, 0, -1], 1)])


@given(st.lists(st.lists(st.integers(0, 3), min_size=0, max_size=8), min_size=1, max_size=5))
def test_sums_are_preserved(sentences: list[list[int]]) -> None:
    rows, scores = [], []
    generator = np.random.default_rng(len(sentences))
    for pieces in sentences:  # pieces per word, 0 for a blank one
        words = [index for index, number in enumerate(pieces) for _ in range(number)]
        rows.append(_tokens([-1, *words, -1], len(pieces)))
        scores.append(generator.normal(size=len(words) + 2))
    magnitude, signed = token_to_word(scores, rows)
    for pieces, score, m, s in zip(sentences, scores, magnitude, signed, strict=True):
        assert len(m) == len(s) == len(pieces)
        assert m.sum() == pytest.approx(np.abs(score[1:-1]).sum() / np.abs(score).sum())
        assert s.sum() == pytest.approx(score[1:-1].sum())
        assert all(m[i] == 0 for i, number in enumerate(pieces) if number == 0)
