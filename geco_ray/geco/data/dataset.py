"""The tasks of the benchmark as typed rows: the four GECO tasks, the demo tasks of the package, a user's own folder.

A GECO task is checked against the released SHA-256, and the four rows of the release whose mask and sentence differ
in length are repaired, each with a record. Everything else that is wrong is refused with file and line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from geco_ray.errors import UserError
from geco_ray.geco.data.sources import GECO_TASKS, SHA256, find_files, user_tasks, verify
from geco_ray.geco.rows import LABELS, Row, check_labels, parse_rows, read_bytes
from geco_ray.geco.task import REPAIRS, SPLITS, Repair, Task, combine_fingerprint
from geco_ray.seeds import numpy_stream

DEMO_TASKS = ("demo_binary_all", "demo_binary_subj", "demo_non_binary_all", "demo_non_binary_subj")


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
        parts[split] = tuple(_repaired(row, name, split, repairs) for row in rows)
    names = labels or _common_labels(parts, files)
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


def _repaired(row: Row, name: str, split: str, repairs: list[Repair]) -> Row:
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
    if names["train"] != names["test"]:
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
