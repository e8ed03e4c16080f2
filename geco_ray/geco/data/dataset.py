"""The tasks of the benchmark as typed rows: the four GECO tasks, the demo tasks of the package, a user's own folder.

A GECO task is checked against the released SHA-256, and the four rows of the release whose mask and sentence differ
in length are repaired, each with a :class:`Repair` record. Everything else that is wrong is refused with file and line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from geco_ray.errors import UserError
from geco_ray.files.text import compare_key
from geco_ray.geco.data.sources import GECO_TASKS, SHA256, SPLITS, find_files, user_tasks, verify
from geco_ray.geco.rows import LABELS, POLICY, Row, check_labels, parse_rows, read_bytes, read_rows, respelled
from geco_ray.seeds import numpy_stream

__all__ = [
    "DEMO_TASKS",
    "LABELS",
    "POLICY",
    "REPAIRS",
    "Repair",
    "Row",
    "Task",
    "load_task",
    "read_rows",
    "sample_sentences",
    "task_fingerprint",
    "task_names",
]

DEMO_TASKS = ("demo_binary_all", "demo_binary_subj", "demo_non_binary_all", "demo_non_binary_subj")

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
    """A row that was mended on loading: ``kind`` is ``trim_mask`` or ``insert_blank``, at word ``position``."""

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
        repairs: what was mended.
    """

    name: str
    labels: tuple[str, ...]
    train: tuple[Row, ...]
    test: tuple[Row, ...]
    fingerprint: str
    repairs: tuple[Repair, ...] = ()


def task_names(data_dir: Path | None = None) -> list[str]:
    """The four GECO tasks, the four demo tasks, and the user's own folders where :func:`load_task` would find them."""
    own = user_tasks(data_dir)
    return [*GECO_TASKS, *DEMO_TASKS, *(name for name in own if name not in GECO_TASKS + DEMO_TASKS)]


def load_task(name: str, data_dir: Path | None = None) -> Task:
    """Load a task.

    Args:
        name: one of :func:`task_names`, or a folder with ``train.jsonl`` and ``test.jsonl`` in ``data_dir``.
        data_dir: holds ``geco/<name>/`` or ``<name>/``; without it ``$GECO_RAY_DATA`` and the download cache are
            searched. Demo tasks are in the package.

    Raises:
        UserError: an unknown name, a missing file, a wrong checksum, or a defect that is not repaired.
    """
    if name in DEMO_TASKS:
        from geco_ray.geco.corpus.demo import demo_task

        return demo_task(name)
    files = find_files(name, data_dir, task_names())
    parts: dict[str, tuple[Row, ...]] = {}
    hashes: dict[str, str] = {}
    repairs: list[Repair] = []
    pinned = name in GECO_TASKS
    labels: tuple[str, ...] | None = (LABELS if "non_binary" in name else LABELS[:2]) if pinned else None
    for split, path in files.items():
        data = read_bytes(path)
        hashes[split] = verify(name, split, path, data)
        rows = parse_rows(data, str(path), labels=labels, keep_mismatched=pinned)
        parts[split] = tuple(_mended(row, name, split, repairs) for row in rows)
    names = labels or _common_labels(parts, files)
    parts["test"] = tuple(respelled(parts["test"], names))
    _check_split(parts, files)
    fingerprint = combine_fingerprint(name, hashes)
    return Task(name, names, parts["train"], parts["test"], fingerprint, tuple(repairs))


def task_fingerprint(name: str, data_dir: Path | None = None) -> str:
    """The fingerprint that :func:`load_task` would give; for the four GECO tasks no file is needed."""
    if name in DEMO_TASKS:
        from geco_ray.geco.corpus.demo import demo_task

        return demo_task(name).fingerprint
    if name in GECO_TASKS:
        return combine_fingerprint(name, {split: SHA256[name, split] for split in SPLITS})
    files = find_files(name, data_dir, task_names())
    hashes = {split: hashlib.sha256(read_bytes(path)).hexdigest() for split, path in files.items()}
    return combine_fingerprint(name, hashes)


def combine_fingerprint(name: str, hashes: Mapping[str, str]) -> str:
    """SHA-256 over the two files' SHA-256 and over the repairs that the loader makes in a task of that name."""
    repairs = [f"{key[1:]} {value}" for key, value in sorted(REPAIRS.items()) if key[0] == name]
    text = "\n".join([*(hashes[split] for split in SPLITS), *repairs])
    return hashlib.sha256(text.encode()).hexdigest()


def sample_sentences(task: Task, n: int, seed: int) -> set[int]:
    """A seeded sample of ``n`` source sentences of the test split, as ``sentence_idx``; use all their forms.

    The sample depends on the seed and on the ids only, so tasks with the same split get the same sentences, and a
    smaller sample is part of a larger one.

    Raises:
        UserError: ``n`` is not between 1 and the number of source sentences.
    """
    ids = sorted({row.sentence_idx for row in task.test})
    if not 1 <= n <= len(ids):
        raise UserError(f"cannot sample {n} source sentences of {task.name!r}", expected=f"1 to {len(ids)}")
    order = numpy_stream("geco", "sentences", seed).permutation(len(ids))
    return {ids[index] for index in order[:n].tolist()}


def _mended(row: Row, name: str, split: str, repairs: list[Repair]) -> Row:
    found = REPAIRS.get((name, split, row.sentence_idx, row.gender))
    if found is not None:
        kind, position = found
        if kind == "trim_mask":
            row = replace(row, truth=row.truth[:position])
        else:
            row = replace(row, words=(*row.words[:position], "", *row.words[position:]))
        repairs.append(Repair(split, row.line, row.sentence_idx, row.gender, kind, position))
    return row


def _common_labels(parts: Mapping[str, Sequence[Row]], files: Mapping[str, Path]) -> tuple[str, ...]:
    names = {split: check_labels(rows, None, str(files[split])) for split, rows in parts.items()}
    if [*map(compare_key, names["train"])] != [*map(compare_key, names["test"])]:
        raise UserError(
            "train and test have different classes",
            where=str(files["test"]),
            found=list(names["test"]),
            expected=f"{list(names['train'])} as in train",
        )
    return names["train"]


def _check_split(parts: Mapping[str, Sequence[Row]], files: Mapping[str, Path]) -> None:
    train = {row.sentence_idx: row.line for row in reversed(parts["train"])}
    for row in parts["test"]:
        if row.sentence_idx in train:
            raise UserError(
                f"source sentence {row.sentence_idx} is in train as well (line {train[row.sentence_idx]})",
                where=f"{files['test']}:{row.line}",
                remedy="All variants of a source sentence belong to one split.",
            )
