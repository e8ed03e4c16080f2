"""Word pieces of a task's rows, with the exact index of the word each piece belongs to.

As in GECOBench, every word of the data set is tokenised on its own and the pieces are joined between the special tokens
of the encoder, ``[CLS]`` and ``[SEP]`` for BERT. A blank word has no piece; a cell with several words has the pieces of
all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geco_ray.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from geco_ray.geco.rows import Row
    from geco_ray.geco.task import Task

IntArray = npt.NDArray[np.int64]

SPECIAL = -1
"""Word index of what is no word and stays in every baseline and perturbation: special tokens, and a prompt."""

REPLACEABLE = -2
"""Word index of what is no word and yet goes from a baseline: a prompt as published."""


@dataclass(frozen=True)
class TokenLayout:
    """What stands around a sentence, and where its class is read.

    Attributes:
        prefix, suffix: ids before and after the words' pieces.
        class_position: the token at which the class is read; a negative one counts from the sentence's end.
        space_before_words: each word is stripped and tokenised with a blank before it.
        kept_ends: how many ids at the very beginning and end are :data:`SPECIAL`, those between :data:`REPLACEABLE`;
            None is all.
    """

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    class_position: int = 0
    space_before_words: bool = False
    kept_ends: int | None = None

    def wrap(self, pieces: Sequence[int]) -> IntArray:
        """The pieces of a sentence's words with what stands around them, (L,)."""
        return np.array([*self.prefix, *pieces, *self.suffix], np.int64)

    def word_index(self, words: Sequence[int]) -> IntArray:
        """The word index of each id of :meth:`wrap`, from that of each piece, (L,)."""
        before, after = np.full(len(self.prefix), SPECIAL), np.full(len(self.suffix), SPECIAL)
        if self.kept_ends is not None:
            before[self.kept_ends :] = REPLACEABLE
            after[: max(0, len(after) - self.kept_ends)] = REPLACEABLE
        return np.concatenate([before, np.array(words, np.int64), after]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class WordTokenizer:
    """A tokenizer for single words, the layout of its sentences, and ids of special tokens; None where it has none."""

    backend: Tokenizer
    layout: TokenLayout
    pad_id: int
    mask_id: int | None
    unk_id: int | None

    @property
    def special_ids(self) -> tuple[int, ...]:
        """The ids of all special tokens."""
        return (
            *self.layout.prefix,
            *self.layout.suffix,
            *(i for i in (self.pad_id, self.mask_id, self.unk_id) if i is not None),
        )

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, special tokens included."""
        return int(self.backend.get_vocab_size(with_added_tokens=True))

    def pieces(self, words: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """The piece ids of each distinct word, without special tokens."""
        unique = list(dict.fromkeys(words))
        texts = unique
        if self.layout.space_before_words:
            texts = [f" {text}" if (text := word.strip()) else "" for word in unique]
        encoded = self.backend.encode_batch(texts, add_special_tokens=False)
        return {word: tuple(piece.ids) for word, piece in zip(unique, encoded, strict=True)}

    def text(self, piece_id: int) -> str:
        """The piece as the vocabulary spells it, a continuation with its leading ``##``."""
        return str(self.backend.id_to_token(piece_id))


@dataclass(frozen=True, eq=False)
class TokenRow:
    """One sentence: ``ids`` and ``words``, both (L,); ``words`` is the word index, negative for what is no word."""

    ids: IntArray
    words: IntArray
    word_count: int

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class TaskTokens:
    """A task with the tokens of both its splits, made once and shared by all its models and methods."""

    task: Task
    tokenizer: WordTokenizer
    train: tuple[TokenRow, ...]
    test: tuple[TokenRow, ...]

    @property
    def used_ids(self) -> IntArray:
        """Sorted ids that occur in train or test, and all special ids."""
        special = np.array(self.tokenizer.special_ids)
        return np.unique(np.concatenate([special, *(row.ids for row in (*self.train, *self.test))]))

    def laid_out(self, layout: TokenLayout | None) -> TaskTokens:
        """The same task between other tokens (a prompt); None leaves it as it is."""
        if layout is None or layout == self.tokenizer.layout:
            return self
        return tokenize_task(self.task, replace(self.tokenizer, layout=layout))

    @property
    def longest_test(self) -> int:
        """Length of the longest sentence of the test split, with its special tokens."""
        return max((len(row) for row in self.test), default=0)


def tokenize_task(task: Task, tokenizer: WordTokenizer) -> TaskTokens:
    """Tokenise both splits of ``task``. How long a sentence may be, the encoder says: :func:`require_positions`."""
    pieces = tokenizer.pieces(word for rows in (task.train, task.test) for row in rows for word in row.words)
    train, test = (tuple(_tokenize_row(row, tokenizer, pieces) for row in rows) for rows in (task.train, task.test))
    return TaskTokens(task, tokenizer, train, test)


def require_positions(tokens: TaskTokens, longest: int | None, encoder: str) -> None:
    """Refuse an encoder that has fewer positions than a sentence has tokens; ``longest`` None is any number.

    Raises:
        UserError: it has; the sentence is named by split and line.
    """
    task = tokens.task
    for split, rows, parts in (("train", task.train, tokens.train), ("test", task.test, tokens.test)):
        for row, tokenized in zip(rows, parts, strict=True):
            if longest is not None and len(tokenized) > longest:
                raise UserError(
                    f"the sentence in line {row.line} of {split} is too long for the encoder",
                    where=f"encoder {encoder!r}, {task.name} (sentence_idx {row.sentence_idx})",
                    found=f"{len(tokenized)} pieces with special tokens",
                    expected=f"at most {longest}, its positions",
                    remedy="Take an encoder with more positions, or shorten the sentence",
                )


def pad_rows(
    rows: Sequence[TokenRow], pad_id: int, length: int | None = None
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Stack rows to ``ids`` and ``mask`` (True at tokens), both (n, L) with L the longest row or ``length``."""
    width = max([len(row) for row in rows] + [length or 0])
    ids = np.full((len(rows), width), pad_id, dtype=np.int64)
    mask = np.zeros((len(rows), width), dtype=np.bool_)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row.ids
        mask[index, : len(row)] = True
    return ids, mask


def _tokenize_row(row: Row, tokenizer: WordTokenizer, pieces: dict[str, tuple[int, ...]]) -> TokenRow:
    ids = [piece for word in row.words for piece in pieces[word]]
    words = [index for index, word in enumerate(row.words) for _ in pieces[word]]
    return TokenRow(tokenizer.layout.wrap(ids), tokenizer.layout.word_index(words), len(row.words))


def equal_length_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Positions grouped so that a batch holds one length only, and at most ``budget`` tokens but one row at least.

    Without padding a row's result cannot depend on its neighbours' lengths. Longest first, so that a batch too large
    for the memory fails at once.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    batches: list[list[int]] = []
    for index in order:
        length = lengths[index]
        last = batches[-1] if batches else None
        most = max(1, budget // max(1, length))
        if last is None or lengths[last[0]] != length or len(last) == most:
            batches.append([index])
        else:
            last.append(index)
    return batches
