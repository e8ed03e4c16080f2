"""Which words go with which class: correlation of each word's tf-idf weight with the label.

GECOBench (Frontiers in AI 2025, doi 10.3389/frai.2025.1694388, supplement, correlation figure): tf-idf over the test
sentences with scikit-learn's defaults, Pearson correlation of each column with the numeric label. With three classes
the number of the label makes the middle class invisible; ``target`` asks for one class against the others instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pyarrow as pa

from geco_ray.errors import UserError, unknown_name
from geco_ray.geco.audit.audit import Split, read_splits
from geco_ray.geco.data.sources import GECO_TASKS
from geco_ray.geco.rows import Row

_SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("split", pa.string()),
        ("target", pa.string()),
        ("side", pa.string()),
        ("rank", pa.int32()),
        ("word", pa.string()),
        ("correlation", pa.float64()),
        ("rows", pa.int64()),
    ]
)


def correlate_words(rows: Sequence[Row], target: str | None = None) -> dict[str, tuple[float, int]]:
    """Correlation with the label and number of rows that hold it, for every word, most negative first.

    Words are what scikit-learn's default analyser makes of the blank-joined sentence in Unicode's composed form (a
    decomposed accent would split its word): lower case, two word characters or more. Words of equal correlation (to 12
    digits) are in alphabetical order.

    Args:
        rows: rows of one split.
        target: a class name for that class against the others; None for the numeric label, as in the paper.

    Raises:
        UserError: a single class in ``rows``, or no row of ``target``; no correlation is defined then.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    labels = np.array([row.target if target is None else row.gender == target for row in rows], dtype=np.float64)
    if target is not None and not labels.any():
        raise unknown_name("class", target, dict.fromkeys(row.gender for row in rows))
    if len(np.unique(labels)) < 2:
        raise UserError("all rows have the same label, so no correlation with it is defined")
    vectorizer = TfidfVectorizer()
    weights = vectorizer.fit_transform([normalize("NFC", " ".join(row.words)) for row in rows]).tocsc()
    centred = labels - labels.mean()
    # Sums over the non-zero entries only: the mean of the labels is already taken out of `centred`.
    covariance = weights.T @ centred
    squares = np.asarray(weights.multiply(weights).sum(axis=0)).ravel()
    spread = squares - np.asarray(weights.sum(axis=0)).ravel() ** 2 / len(rows)
    values = covariance / np.sqrt(np.maximum(spread, np.finfo(np.float64).tiny) * (centred @ centred))
    found = zip(vectorizer.get_feature_names_out(), values.tolist(), np.diff(weights.indptr).tolist(), strict=True)
    ordered = sorted((round(value, 12), str(word), count) for word, value, count in found)
    return {word: (value, count) for value, word, count in ordered}


def strongest_words(split: Split, top: int = 10, target: str | None = None) -> pa.Table:
    """The ``top`` most negative and the ``top`` most positive words of one split, strongest first.

    Returns:
        Columns task, split, target (``label`` for the numeric one), side (``negative`` or ``positive``), rank (from
        1), word, correlation, rows (how many hold the word).
    """
    found = [(word, value, count) for word, (value, count) in correlate_words(split.rows, target).items()]
    sides = {
        "negative": [entry for entry in found if entry[1] < 0][:top],
        "positive": sorted((entry for entry in found if entry[1] > 0), key=lambda entry: (-entry[1], entry[0]))[:top],
    }
    records = [
        {
            "task": split.task,
            "split": split.split,
            "target": target or "label",
            "side": side,
            "rank": rank,
            "word": word,
            "correlation": value,
            "rows": count,
        }
        for side, entries in sides.items()
        for rank, (word, value, count) in enumerate(entries, start=1)
    ]
    return pa.Table.from_pylist(records, schema=_SCHEMA)


def correlations_of_tasks(
    names: Sequence[str] = GECO_TASKS, data_dir: Path | None = None, top: int = 10, *, per_class: bool = False
) -> pa.Table:
    """:func:`strongest_words` of the test splits of whole tasks; ``per_class`` adds each class against the others."""
    tables = []
    for name in names:
        test = next(split for split in read_splits(name, data_dir) if split.split == "test")
        targets = [None, *test.labels] if per_class else [None]
        tables += [strongest_words(test, top, target) for target in targets]
    return pa.concat_tables(tables)
