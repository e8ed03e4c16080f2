"""The two tables by which the paper shows its data, computed from the files.

GECOBench (Frontiers in AI 2025, doi 10.3389/frai.2025.1694388): Table 1, properties of the data sets; Table 2, one
sentence in its seven versions with the ground truth marked. Both are ready to print, see
:class:`~geco_ray.table.PrintedTable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from geco_ray.errors import UserError
from geco_ray.geco.audit.audit import Audit, Split, read_splits
from geco_ray.geco.data.sources import GECO_TASKS
from geco_ray.geco.rows import Row
from geco_ray.table import Cell, PrintedTable, Span, cell

EXAMPLE_SENTENCE = 457  # the example of the paper's Table 2

_TITLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "binary_gender_all": ("D_A binary", "$D_A^{b}$"),
        "binary_gender_subj": ("D_S binary", "$D_S^{b}$"),
        "non_binary_gender_all": ("D_A non-binary", "$D_A^{nb}$"),
        "non_binary_gender_subj": ("D_S non-binary", "$D_S^{nb}$"),
    }
)


def table_1(splits: Sequence[Split]) -> PrintedTable:
    """Properties of every task in ``splits``, its files taken together: sentences, lengths, truth, vocabulary.

    Standard deviations have ddof 0. The last column is the mean over test rows of the share of marked words: what a
    uniform random attribution per word is expected to reach in mass accuracy.
    """
    header = (
        "data set",
        "classes",
        "source sentences",
        "train",
        "test",
        "words per sentence",
        "truth words per sentence",
        "truth share",
        "without truth",
        "vocabulary",
        "chance (test)",
    )
    tasks = dict.fromkeys(split.task for split in splits)
    rows = tuple(tuple(_properties(task, [split for split in splits if split.task == task])) for task in tasks)
    note = "Words per sentence and truth words per sentence: mean ± standard deviation over all labelled sentences."
    return PrintedTable("Properties of the data sets", header, rows, (note,))


def _properties(task: str, splits: Sequence[Split]) -> Iterator[Cell]:
    rows = [row for split in splits for row in split.rows]
    words = np.array([len(row.words) for row in rows])
    truth = np.array([sum(row.truth) for row in rows])
    test = [sum(row.truth) / len(row.words) for split in splits if split.split == "test" for row in split.rows]
    yield title_cell(task)
    yield cell(", ".join(splits[0].labels))
    yield cell(len({row.sentence_idx for row in rows}))
    for name in ("train", "test"):
        yield cell(sum(len(split.rows) for split in splits if split.split == name))
    for values in (words, truth):
        yield cell(f"{values.mean():.2f} ± {values.std():.2f}")
    yield cell(f"{truth.sum() / words.sum():.3f}")
    yield cell(int((truth == 0).sum()))
    yield cell(len({word.strip().lower() for row in rows for word in row.words}))
    yield cell(f"{np.mean(test):.3f}" if test else None)


def table_2(
    subject: Sequence[Split],
    everyone: Sequence[Split],
    sentence_idx: int = EXAMPLE_SENTENCE,
    original: Sequence[str] | None = None,
) -> PrintedTable:
    """One sentence in all its versions, the ground truth marked.

    Args:
        subject: the files of a D_S task.
        everyone: the files of the D_A task with the same classes.
        sentence_idx: which source sentence.
        original: its unaltered words, which only the labelled source knows; without them that row is left out.

    Raises:
        UserError: the sentence is in none of the files of a task.
    """
    rows: list[tuple[Cell, ...]] = []
    if original is not None:
        rows.append((cell("original"), cell("as written"), cell(" ".join(original))))
    for short, latex, splits in (("D_S", "$D_S$", subject), ("D_A", "$D_A$", everyone)):
        found = [row for split in splits for row in split.rows if row.sentence_idx == sentence_idx]
        if not found:
            raise UserError(f"source sentence {sentence_idx} is not in {splits[0].task!r}" if splits else "no files")
        for row in sorted(found, key=lambda row: row.target):
            rows.append((cell(short, latex=latex), cell(row.gender), marked_sentence(row)))
    return PrintedTable(
        f"Source sentence {sentence_idx} in its {len(rows)} versions", ("data set", "form", "sentence"), tuple(rows)
    )


def marked_sentence(row: Row) -> Cell:
    """The words of a row joined by blanks, those of the truth marked; a blank word shows as nothing."""
    spans: list[Span] = []
    for position, word in enumerate(row.words):
        if spans:
            spans.append(Span(" "))
        marked = position < len(row.truth) and row.truth[position] == 1
        spans.append(Span(word.strip(), marked and bool(word.strip())))
    return tuple(spans)


def title_cell(task: str) -> Cell:
    """The paper's name of a task, or the name itself for a task of the user's own."""
    text, latex = _TITLES.get(task, (task, None))
    return cell(text, latex=latex)


def counts_table(audit: Audit) -> PrintedTable:
    """The counts of an audit in short: one row per task and split."""
    header = (
        "task",
        "split",
        "rows",
        "source sentences",
        "rows per class",
        "words: mean ± sd (range)",
        "words",
        "truth words: mean (range)",
        "truth share",
        "without truth: rows, sentences",
        "vocabulary: as written, lower case",
    )
    rows = []
    for found in audit.counts.to_pylist():
        texts = (
            found["task"],
            found["split"],
            found["rows"],
            found["source_sentences"],
            ", ".join(map(str, found["rows_per_class"])),
            f"{found['words_mean']:.3f} ± {found['words_sd']:.3f} ({found['words_min']}–{found['words_max']})",
            found["words_total"],
            f"{found['truth_mean']:.3f} ({found['truth_min']}–{found['truth_max']})",
            f"{found['truth_share']:.4f}",
            f"{found['empty_truth_rows']}, {found['empty_truth_sentences']}",
            f"{found['vocabulary']}, {found['vocabulary_lower']}",
        )
        rows.append(tuple(cell(text) for text in texts))
    return PrintedTable("What is in the files", header, tuple(rows))


def defects_table(audit: Audit) -> PrintedTable:
    """The defects of an audit in short: one row per kind with its counts in train / test of every task and the policy.

    A kind that the loader refuses and that is nowhere found is left out, since such a file cannot be loaded at all.
    """
    found = audit.summary.to_pylist()
    tasks = list(dict.fromkeys(record["task"] for record in found))
    rows = []
    for kind in dict.fromkeys(record["defect"] for record in found):
        own = [record for record in found if record["defect"] == kind]
        policies = {record["policy"] for record in own if record["count"]} or {own[0]["policy"]}
        if policies == {"reject"}:
            continue
        counts = [" / ".join(str(record["count"]) for record in own if record["task"] == task) for task in tasks]
        texts = (f"{kind} ({own[0]['unit']})", *counts, f"{', '.join(sorted(policies))}: {own[0]['reason']}")
        rows.append(tuple(cell(text) for text in texts))
    return PrintedTable("What is wrong with them", ("defect (counted in)", *tasks, "the loader"), tuple(rows))


def tables_of_tasks(data_dir: Path | None = None, original: Sequence[str] | None = None) -> list[PrintedTable]:
    """Tables 1 and 2 of the four GECO tasks."""
    splits = {name: read_splits(name, data_dir) for name in GECO_TASKS}
    return [
        table_1([split for parts in splits.values() for split in parts]),
        table_2(splits["non_binary_gender_subj"], splits["non_binary_gender_all"], original=original),
    ]
