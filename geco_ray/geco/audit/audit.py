"""What is in the files of a task and what is wrong with it, as tables; nothing is repaired or dropped here.

The counts are those by which GECOBench (Frontiers in AI 2025, doi 10.3389/frai.2025.1694388) describes its data. Rows
are audited as they stand in the file, so the four rows that :func:`~geco_ray.geco.data.dataset.load_task` repairs are
seen with their fault, and the defect table says what the loader does about each.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from geco_ray.geco.data.dataset import DEMO_TASKS, load_task
from geco_ray.geco.data.sources import GECO_TASKS, find_files, verify
from geco_ray.geco.rows import POLICY, Row, parse_rows, read_bytes
from geco_ray.geco.task import REPAIRS, SPLITS

LOADER_POLICY: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        **POLICY,
        "unchanged_truth": ("count", "kept; a word marked as truth that is the same in all variants"),
        "unmarked_change": ("count", "kept; a word that differs between the variants and is not marked"),
        "mask_varies": ("count", "kept; the variants of one sentence have different masks"),
        "seen_text": ("count", "kept; a test text that stands in train word for word"),
    }
)
"""Defect to what the loader does (``reject`` or ``count``; the audit adds ``repair``) and why."""

_DEFECT_SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("split", pa.string()),
        ("defect", pa.string()),
        ("line", pa.int32()),
        ("sentence_idx", pa.int32()),
        ("gender", pa.string()),
        ("position", pa.int32()),
        ("found", pa.string()),
        ("policy", pa.string()),
    ]
)


@dataclass(frozen=True)
class Split:
    """One file of a task as it stands on disk."""

    task: str
    split: str
    labels: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Finding:
    """One occurrence of a defect: in a row, or at a word ``position`` of it."""

    defect: str
    row: Row
    position: int | None
    found: str


@dataclass(frozen=True, eq=False)
class Audit:
    """The audit of some tasks.

    Attributes:
        counts: one row per task and split: rows, classes, lengths, truth, vocabulary.
        defects: one row per occurrence, with line, word position and what the loader does.
        summary: one row per task, split and kind of defect (also those that were not found): ``count`` in ``unit``,
            the rows and source sentences touched, the loader's policy and its reason.
    """

    counts: pa.Table
    defects: pa.Table
    summary: pa.Table


def audit_tasks(names: Sequence[str] = GECO_TASKS, data_dir: Path | None = None) -> Audit:
    """Audit whole tasks, see :func:`audit`.

    Raises:
        UserError: as :func:`~geco_ray.geco.data.dataset.load_task` for what it refuses to read.
    """
    return audit([split for name in names for split in read_splits(name, data_dir)])


def audit(splits: Sequence[Split]) -> Audit:
    """Count and check the given files; a task's train file must stand before its test file for ``seen_text``."""
    counts, defects, summary = [], [], []
    train_texts: dict[str, set[tuple[str, ...]]] = {}
    for split in splits:
        seen = train_texts.get(split.task, set())
        if split.split == "train":
            train_texts[split.task] = {row.words for row in split.rows}
        findings = list(find_defects(split.rows, seen))
        counts.append(count_split(split))
        defects += [_defect_record(split, finding) for finding in findings]
        summary += _summarise(split, findings)
    return Audit(
        pa.Table.from_pylist(counts),
        pa.Table.from_pylist(defects, schema=_DEFECT_SCHEMA),
        pa.Table.from_pylist(summary),
    )


def read_splits(name: str, data_dir: Path | None = None) -> list[Split]:
    """The train and test file of a task with every row as it stands there, mask and sentence of unequal length too.

    Raises:
        UserError: a missing file, a wrong checksum, or a row that cannot be read.
    """
    task = load_task(name, data_dir)
    if name in DEMO_TASKS:
        return [Split(name, "train", task.labels, task.train), Split(name, "test", task.labels, task.test)]
    files = find_files(name, data_dir, ())
    splits = []
    for split in SPLITS:
        data = read_bytes(files[split])
        verify(name, split, files[split], data)
        rows = parse_rows(data, str(files[split]), labels=task.labels, keep_mismatched=True)
        splits.append(Split(name, split, task.labels, tuple(rows)))
    return splits


def count_split(split: Split) -> dict[str, object]:
    """Counts of one file.

    Standard deviations have ddof 0. ``truth_share`` is marked words over all words; ``truth_share_mean`` the mean over
    rows of each row's share, which is the expected mass accuracy of a word-wise uniform random attribution. The two
    vocabularies count distinct words as they stand, and in lower case without blanks at the ends.
    """
    rows = split.rows
    words = np.array([len(row.words) for row in rows])
    truth = np.array([sum(row.truth) for row in rows])
    per_class = Counter(row.gender for row in rows)
    vocabulary = {word for row in rows for word in row.words}
    empty = [row for row in rows if not any(row.truth)]
    return {
        "task": split.task,
        "split": split.split,
        "rows": len(rows),
        "source_sentences": len({row.sentence_idx for row in rows}),
        "rows_per_class": [per_class[label] for label in split.labels],
        "words_mean": float(words.mean()),
        "words_sd": float(words.std()),
        "words_min": int(words.min()),
        "words_max": int(words.max()),
        "words_total": int(words.sum()),
        "truth_mean": float(truth.mean()),
        "truth_min": int(truth.min()),
        "truth_max": int(truth.max()),
        "truth_share": float(truth.sum() / words.sum()),
        "truth_share_mean": float((truth / words).mean()),
        "empty_truth_rows": len(empty),
        "empty_truth_sentences": len({row.sentence_idx for row in empty}),
        "vocabulary": len(vocabulary),
        "vocabulary_lower": len({word.strip().lower() for word in vocabulary}),
    }


def find_defects(
    rows: Sequence[Row], train_texts: set[tuple[str, ...]] | frozenset[tuple[str, ...]] = frozenset()
) -> Iterator[Finding]:
    """Every defect of one file's rows that can be read at all; ``train_texts`` are those a test file must not hold."""
    for row in rows:
        if len(row.truth) != len(row.words):
            yield Finding("length_mismatch", row, None, f"{len(row.truth)} truth values, {len(row.words)} words")
        if not any(row.truth):
            yield Finding("empty_truth", row, None, " ".join(row.words))
        for position, word in enumerate(row.words):
            stripped = word.strip()
            if not stripped:
                yield Finding("blank_word", row, position, word)
            if stripped != word:
                yield Finding("padded_word", row, position, word)
        if row.words in train_texts:
            yield Finding("seen_text", row, None, " ".join(row.words))
    yield from _repeated_texts(rows)
    yield from _mask_faults(rows)


def _repeated_texts(rows: Sequence[Row]) -> Iterator[Finding]:
    by_text: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        by_text[row.words].append(row)
    for text, holders in by_text.items():
        if len({row.target for row in holders}) > 1:
            for row in holders:
                yield Finding("several_labels", row, None, " ".join(text))
        for row in holders[1:]:
            yield Finding("duplicate_text", row, None, " ".join(text))


def _mask_faults(rows: Sequence[Row]) -> Iterator[Finding]:
    """Deviations from the rule of the truth: a word is marked if and only if not all variants have the same word."""
    by_sentence: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_sentence[row.sentence_idx].append(row)
    for variants in by_sentence.values():
        first = variants[0]
        for row in variants[1:]:
            if row.truth != first.truth:
                yield Finding("mask_varies", row, None, f"differs from the mask of {first.gender}")
        if len(variants) < 2 or len({len(row.words) for row in variants}) > 1:
            continue  # nothing to pair the words with; a row of the wrong length is found as length_mismatch
        for position, (words, marked) in enumerate(zip(_columns(variants), first.truth, strict=False)):
            if (len(set(words)) > 1) != bool(marked):
                yield Finding("unchanged_truth" if marked else "unmarked_change", first, position, " / ".join(words))


def _columns(variants: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    return zip(*(row.words for row in variants), strict=True)


def _policy_of(split: Split, finding: Finding) -> str:
    repair = REPAIRS.get((split.task, split.split, finding.row.sentence_idx, finding.row.gender))
    if finding.defect == "length_mismatch" and repair is not None:
        return f"repair: {repair[0]} at word {repair[1]}"
    return LOADER_POLICY[finding.defect][0]


def _defect_record(split: Split, finding: Finding) -> dict[str, object]:
    row = finding.row
    return {
        "task": split.task,
        "split": split.split,
        "defect": finding.defect,
        "line": row.line,
        "sentence_idx": row.sentence_idx,
        "gender": row.gender,
        "position": finding.position,
        "found": finding.found,
        "policy": _policy_of(split, finding),
    }


_UNITS = {
    "blank_word": "words",
    "padded_word": "words",
    "unchanged_truth": "words",
    "unmarked_change": "words",
    "several_labels": "texts",
}


def _summarise(split: Split, findings: Sequence[Finding]) -> list[dict[str, object]]:
    by_defect: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_defect[finding.defect].append(finding)
    records: list[dict[str, object]] = []
    for defect, (policy, reason) in LOADER_POLICY.items():
        found = by_defect[defect]
        unit = _UNITS.get(defect, "rows")
        policies = sorted({_policy_of(split, finding).split(":")[0] for finding in found})
        records.append(
            {
                "task": split.task,
                "split": split.split,
                "defect": defect,
                "count": len({finding.row.words for finding in found}) if unit == "texts" else len(found),
                "unit": unit,
                "rows": len({finding.row.line for finding in found}),
                "source_sentences": len({finding.row.sentence_idx for finding in found}),
                "policy": " or ".join(policies) or policy,
                "reason": reason,
            }
        )
    return records
