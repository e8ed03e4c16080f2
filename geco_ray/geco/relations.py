"""How two tasks over the same source sentences relate: which rows have the same words, whose truth contains whose.

In GECO (Frontiers in AI 2025, doi 10.3389/frai.2025.1694388) the truth of D_S should lie within that of D_A, and the
truth of a binary task within that of its non-binary one; the released files keep this up to the sentences listed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from geco_ray.geco.audit.audit import Split, read_splits

GECO_PAIRS = (
    ("binary_gender_subj", "binary_gender_all"),
    ("non_binary_gender_subj", "non_binary_gender_all"),
    ("binary_gender_all", "non_binary_gender_all"),
    ("binary_gender_subj", "non_binary_gender_subj"),
)
"""Pairs of which the first task's truth should lie within the second's."""

_SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("other", pa.string()),
        ("split", pa.string()),
        ("rows", pa.int64()),
        ("only_in_task", pa.int64()),
        ("same_words", pa.int64()),
        ("same_truth", pa.int64()),
        ("truth_within", pa.int64()),
        ("other_words", pa.list_(pa.int64())),
        ("truth_outside", pa.list_(pa.int64())),
        ("not_comparable", pa.list_(pa.int64())),
    ]
)


def relate(task: Sequence[Split], other: Sequence[Split]) -> pa.Table:
    """Compare the rows of ``task`` with those of ``other`` that have the same split, source sentence and class.

    Returns:
        One row per split. Columns: task, other, split, rows (shared), only_in_task (rows without a partner);
        same_words, same_truth, truth_within (numbers of shared rows); and by ``sentence_idx``: other_words (the words
        differ), truth_outside (a word is truth in ``task`` only), not_comparable (masks of different length, which
        are neither the same nor within).
    """
    records = []
    for split in task:
        partners = {
            (row.sentence_idx, row.target): row for part in other if part.split == split.split for row in part.rows
        }
        pairs = [(row, partners.get((row.sentence_idx, row.target))) for row in split.rows]
        shared = [(row, partner) for row, partner in pairs if partner is not None]
        even = [(row, partner) for row, partner in shared if len(row.truth) == len(partner.truth)]
        outside = [row for row, partner in even if any(a > b for a, b in zip(row.truth, partner.truth, strict=True))]
        changed = [row for row, partner in shared if row.words != partner.words]
        uneven = [row for row, partner in shared if len(row.truth) != len(partner.truth)]
        records.append(
            {
                "task": split.task,
                "other": other[0].task if other else None,
                "split": split.split,
                "rows": len(shared),
                "only_in_task": len(pairs) - len(shared),
                "same_words": len(shared) - len(changed),
                "same_truth": sum(row.truth == partner.truth for row, partner in even),
                "truth_within": len(even) - len(outside),
                "other_words": sorted({row.sentence_idx for row in changed}),
                "truth_outside": sorted({row.sentence_idx for row in outside}),
                "not_comparable": sorted({row.sentence_idx for row in uneven}),
            }
        )
    return pa.Table.from_pylist(records, schema=_SCHEMA)


def relations_of_tasks(data_dir: Path | None = None) -> pa.Table:
    """:func:`relate` for :data:`GECO_PAIRS`, from the released files."""
    splits = {name: read_splits(name, data_dir) for name in {name for pair in GECO_PAIRS for name in pair}}
    return pa.concat_tables([relate(splits[first], splits[second]) for first, second in GECO_PAIRS])
