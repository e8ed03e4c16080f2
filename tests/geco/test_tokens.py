"""Pieces, their words, and batches of equal length."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from geco_ray.errors import UserError
from geco_ray.geco.encoders import EncoderSource, encoder_positions, load_tokenizer
from geco_ray.geco.rows import Row
from geco_ray.geco.task import Task
from geco_ray.geco.tokens import (
    TaskTokens,
    TokenRow,
    WordTokenizer,
    equal_length_batches,
    pad_rows,
    require_positions,
    tokenize_task,
)


def _row(*words: str, line: int = 1) -> Row:
    return Row(words, (0,) * len(words), "female", 0, 7, line)


def tokenize_rows(rows: list[Row], tokenizer: WordTokenizer) -> tuple[TokenRow, ...]:
    return tokenize_task(Task("t", ("female",), (), tuple(rows), "0" * 64), tokenizer).test


def test_every_piece_knows_its_word(tiny_source: EncoderSource) -> None:
    tokenizer = load_tokenizer(tiny_source)
    (row,) = tokenize_rows([_row("She", "", "running", "parent's sibling", " Red ", "zebra")], tokenizer)
    texts = [tokenizer.text(int(i)) for i in row.ids]
    assert texts == ["[CLS]", "she", "run", "##ning", "parent", "'", "s", "sibling", "red", "[UNK]", "[SEP]"]
    assert row.words.tolist() == [-1, 0, 2, 2, 3, 3, 3, 3, 4, 5, -1]
    assert row.word_count == 6


def test_the_files_fixed_padding_and_cut_are_off(tiny_source: EncoderSource) -> None:
    (row,) = tokenize_rows([_row(*["dog"] * 300)], load_tokenizer(tiny_source))
    assert len(row) == 302
    assert set(row.ids[1:-1].tolist()) == set(load_tokenizer(tiny_source).pieces(["dog"])["dog"])


def test_a_sentence_beyond_the_encoder_is_named(tiny_task: Task, tiny_source: EncoderSource) -> None:
    long = dataclasses.replace(tiny_task, test=(*tiny_task.test, _row(*["running"] * 256, line=19)))
    tokens = tokenize_task(long, load_tokenizer(tiny_source))
    require_positions(tokens, 514, "tiny")
    require_positions(tokens, None, "tiny")
    with pytest.raises(UserError, match=r"\(sentence_idx 7\).*line 19 of test.*514 pieces.*at most 512"):
        require_positions(tokens, encoder_positions(tiny_source), "tiny")


def test_used_ids_hold_both_splits_and_all_special_tokens(tiny_tokens: TaskTokens) -> None:
    used = set(tiny_tokens.used_ids.tolist())
    assert used == {0, 1, 2, 3, 4} | {int(i) for row in (*tiny_tokens.train, *tiny_tokens.test) for i in row.ids}
    assert tiny_tokens.longest_test == max(len(row) for row in tiny_tokens.test)


def test_padding_and_mask(tiny_source: EncoderSource) -> None:
    rows = tokenize_rows([_row("he"), _row("he", "sees", ".")], load_tokenizer(tiny_source))
    ids, mask = pad_rows(rows, 0, length=6)
    assert ids.shape == (2, 6)
    assert mask.tolist() == [[True] * 3 + [False] * 3, [True] * 5 + [False]]
    assert (ids[~mask] == 0).all()
    assert pad_rows(rows, 0)[0].shape == (2, 5)


def test_batches_have_one_length_and_cover_every_row_once() -> None:
    lengths = np.random.default_rng(0).integers(3, 12, 200).tolist()
    for budget in (1, 24, 1000):
        batches = equal_length_batches(lengths, budget)
        assert sorted(i for batch in batches for i in batch) == list(range(200))
        for batch in batches:
            assert len({lengths[i] for i in batch}) == 1
            assert len(batch) == 1 or sum(lengths[i] for i in batch) <= budget
    assert equal_length_batches([], 8) == []
