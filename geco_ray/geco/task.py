"""What a classification task of the benchmark is: typed rows in two splits, and a fingerprint of them.

Loaders, the builder and the demo corpus all make one; this file knows none of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from geco_ray.geco.rows import Row

SPLITS = ("train", "test")

REPAIRS: Mapping[tuple[str, str, int, str], tuple[str, int]] = MappingProxyType(
    {
        ("non_binary_gender_subj", "train", 1534, "female"): ("trim_mask", 17),
        ("non_binary_gender_subj", "train", 1534, "male"): ("trim_mask", 17),
        ("non_binary_gender_subj", "test", 988, "female"): ("insert_blank", 3),
        ("non_binary_gender_subj", "test", 988, "male"): ("insert_blank", 3),
    }
)
"""Released rows whose mask has one value more than the sentence has words: (task, split, sentence_idx, gender) to
the repair and its position. In 1534 the last word is missing; in 988 the word at position 3 is missing, so that
trimming would mark the wrong words."""


@dataclass(frozen=True)
class Repair:
    """A row that was repaired on loading: ``kind`` is ``trim_mask`` or ``insert_blank``, at word ``position``."""

    split: str
    line: int
    sentence_idx: int
    gender: str
    kind: str
    position: int


@dataclass(frozen=True)
class Task:
    """A classification task with the truth of every row.

    Attributes:
        name: the name of the task.
        labels: class names; ``labels[row.target] == row.gender``.
        train: rows of the train split, in file order.
        test: rows of the test split, in file order; "row" in results is the index in this tuple.
        fingerprint: changes whenever a byte of the data or a repair changes.
        repairs: what was repaired.
    """

    name: str
    labels: tuple[str, ...]
    train: tuple[Row, ...]
    test: tuple[Row, ...]
    fingerprint: str
    repairs: tuple[Repair, ...] = ()


def combine_fingerprint(name: str, hashes: Mapping[str, str]) -> str:
    """SHA-256 over the two files' SHA-256 and over the repairs that the loader makes in a task of that name."""
    repairs = [f"{key[1:]} {value}" for key, value in sorted(REPAIRS.items()) if key[0] == name]
    text = "\n".join([*(hashes[split] for split in SPLITS), *repairs])
    return hashlib.sha256(text.encode()).hexdigest()
