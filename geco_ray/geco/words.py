"""From token attributions to word attributions by an explicit index, so that no repeated piece can shift anything."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from geco_ray.geco.tokens import TokenRow

FloatArray = npt.NDArray[np.float64]


def token_to_word(
    scores: Sequence[npt.ArrayLike], rows: Sequence[TokenRow]
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Word attributions in the order that GECOBench prescribes (methods section, sub-word aggregation).

    Per sentence: absolute value per token, divided by the sum over all tokens with the special ones, special tokens
    dropped, summed over the pieces of a word. A blank word, and every word of an all-zero sentence, has 0; the words
    of a sentence with a score that is not finite have NaN, wherever that score stands.

    Args:
        scores: one array per sentence, as long as its tokens, in any unit.
        rows: the sentences.

    Returns:
        magnitude: one array per sentence, (words,), >= 0; its sum is 1 less the share of the special tokens.
        signed: one array per sentence, (words,): plain sums of the signed scores over a word's pieces.
    """
    flat = np.concatenate([np.asarray(score, np.float64) for score in scores] or [np.zeros(0)])
    lengths = np.array([len(row) for row in rows], np.int64)
    if flat.shape != (int(lengths.sum()),):
        raise ValueError("scores and tokens differ in number")
    sentence = np.repeat(np.arange(len(rows)), lengths)
    total = np.bincount(sentence, np.abs(flat), minlength=len(rows))
    counts = np.array([row.word_count for row in rows], np.int64)
    first = np.cumsum(counts) - counts
    words = np.concatenate([row.words for row in rows] or [np.zeros(0, np.int64)])
    kept = words >= 0
    index = (first[sentence] + words)[kept]
    divisor = np.where(total == 0, 1.0, np.where(np.isfinite(total), total, np.nan))
    share = np.abs(flat) / divisor[sentence]
    magnitude = np.bincount(index, share[kept], minlength=int(counts.sum())).astype(np.float64)
    signed = np.bincount(index, flat[kept], minlength=int(counts.sum())).astype(np.float64)
    cuts = np.cumsum(counts)[:-1]
    return np.split(magnitude, cuts)[: len(rows)], np.split(signed, cuts)[: len(rows)]


def outside_shares(
    scores: Sequence[npt.ArrayLike], rows: Sequence[TokenRow], special_ids: Collection[int]
) -> tuple[list[float | None], list[float | None]]:
    """Per sentence, the shares of the absolute attribution on special tokens and on a prompt around the words.

    A prompt is what is neither a word nor a special token. Two times None where nothing is attributed or a score is not
    finite. Scores and rows as for :func:`token_to_word`.
    """
    special: list[float | None] = []
    prompt: list[float | None] = []
    known = np.array(sorted(special_ids), np.int64)
    for score, row in zip(scores, rows, strict=True):
        magnitude = np.abs(np.asarray(score, np.float64))
        total = float(magnitude.sum())
        defined = total > 0 and np.isfinite(total)
        marks = np.isin(row.ids, known)
        for shares, kind in ((special, marks), (prompt, ~marks)):
            shares.append(float(magnitude[(row.words < 0) & kind].sum()) / total if defined else None)
    return special, prompt


def truth_share(row: TokenRow, truth: Sequence[int], unit: Literal["token", "word"]) -> float | None:
    """What chance gives of mass accuracy: the share of truth among the pieces of words, or among words with a piece.

    It is the expectation for scores that are exchangeable over what the method attributes to. A blank word has no piece
    and never a score. None where no word has one.
    """
    index = row.words[row.words >= 0]
    if unit == "word":
        index = np.unique(index)
    return float(np.asarray(truth, np.float64)[index].mean()) if len(index) else None


def normalize_words(scores: Sequence[npt.ArrayLike]) -> list[FloatArray]:
    """Absolute values divided by their sum per sentence, for methods that score words directly.

    All-zero stays zero; a sentence with a score that is not finite becomes NaN.
    """
    result = []
    for score in scores:
        magnitude = np.abs(np.asarray(score, np.float64))
        total = magnitude.sum()
        if not np.isfinite(total):
            total = np.nan
        result.append(magnitude if total == 0 else magnitude / total)
    return result
