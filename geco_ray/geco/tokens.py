"""Word pieces of a task's rows, with the exact index of the word each piece belongs to.

As in GECOBench, every word of the data set is tokenised on its own and the pieces are joined between ``[CLS]`` and
``[SEP]``. A blank word has no piece; a cell with several words has the pieces of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geco_ray.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from geco_ray.geco.rows import Row
    from geco_ray.geco.task import Task

IntArray = npt.NDArray[np.int64]

MAX_PIECES = 512
SPECIAL = -1
"""Word index of ``[CLS]`` and ``[SEP]``."""


@dataclass(frozen=True, eq=False)
class WordTokenizer:
    """A tokenizer for single words and the ids of BERT's special tokens."""

    backend: Tokenizer
    cls_id: int
    sep_id: int
    pad_id: int
    mask_id: int
    unk_id: int

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, special tokens included."""
        return int(self.backend.get_vocab_size(with_added_tokens=True))

    def pieces(self, words: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """The piece ids of each distinct word, without special tokens."""
        unique = list(dict.fromkeys(words))
        encoded = self.backend.encode_batch(unique, add_special_tokens=False)
        return {word: tuple(piece.ids) for word, piece in zip(unique, encoded, strict=True)}

    def text(self, piece_id: int) -> str:
        """The piece as the vocabulary spells it, a continuation with its leading ``##``."""
        return str(self.backend.id_to_token(piece_id))


@dataclass(frozen=True, eq=False)
class TokenRow:
    """One sentence: ``ids`` and ``words`` of the same length L; ``words`` is the word index, -1 for special tokens."""

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
        special = [getattr(self.tokenizer, f"{name}_id") for name in ("cls", "sep", "pad", "mask", "unk")]
        return np.unique(np.concatenate([np.array(special), *(row.ids for row in (*self.train, *self.test))]))

    @property
    def longest_test(self) -> int:
        """Length of the longest sentence of the test split, with its special tokens."""
        return max((len(row) for row in self.test), default=0)


def tokenize_task(task: Task, tokenizer: WordTokenizer) -> TaskTokens:
    """Tokenise both splits of ``task``.

    Raises:
        UserError: a sentence has more than 512 pieces; it is named by split and line.
    """
    pieces = tokenizer.pieces(word for rows in (task.train, task.test) for row in rows for word in row.words)
    train = _tokenize_rows(task.train, tokenizer, pieces, f"{task.name}/train")
    test = _tokenize_rows(task.test, tokenizer, pieces, f"{task.name}/test")
    return TaskTokens(task, tokenizer, train, test)


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


def _tokenize_rows(
    rows: Sequence[Row], tokenizer: WordTokenizer, pieces: dict[str, tuple[int, ...]], where: str
) -> tuple[TokenRow, ...]:
    result = []
    for row in rows:
        ids = [tokenizer.cls_id]
        words = [SPECIAL]
        for index, word in enumerate(row.words):
            ids.extend(pieces[word])
            words.extend([index] * len(pieces[word]))
        ids.append(tokenizer.sep_id)
        words.append(SPECIAL)
        if len(ids) > MAX_PIECES:
            raise UserError(
                "the sentence has too many word pieces",
                where=f"{where} line {row.line} (sentence_idx {row.sentence_idx})",
                found=len(ids),
                expected=f"at most {MAX_PIECES} with [CLS] and [SEP]",
            )
        result.append(TokenRow(np.array(ids, np.int64), np.array(words, np.int64), len(row.words)))
    return tuple(result)


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
