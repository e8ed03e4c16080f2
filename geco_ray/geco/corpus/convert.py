"""From GECO's labelling JSON to our labelling format, and how far the rules reach the released files.

The public JSON is a legacy version of the labelling behind the release: its neutral labels are empty and later fixes
by hand are missing, so the released files stay the source of truth.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geco_ray.errors import UserError
from geco_ray.geco.corpus.builder import build_variants, truth_mask
from geco_ray.geco.corpus.labelling import VERSIONS, Label, Labelling, Sentence
from geco_ray.geco.corpus.neutral import NeutralRules
from geco_ray.geco.data.dataset import LABELS, Row, Task
from geco_ray.geco.rows import read_bytes


def convert_geco(path: Path) -> Labelling:
    """Read GECO's labelling JSON (``tags`` and ``sentences``, see the repository's labelling tool).

    Raises:
        UserError: not JSON, or not of that shape; the message names the sentence.
    """
    try:
        document = json.loads(read_bytes(path))
    except UnicodeDecodeError:
        raise UserError("the file is not UTF-8", where=str(path)) from None
    except json.JSONDecodeError as error:
        raise UserError(f"invalid JSON: {error.msg}", where=f"{path}:{error.lineno}") from None
    if not isinstance(document, dict) or not all(isinstance(document.get(k), dict) for k in ("tags", "sentences")):
        raise UserError("the file is not a GECO labelling", where=str(path), expected="the keys 'tags' and 'sentences'")
    sentences = []
    for key, record in document["sentences"].items():
        where = f"{path}: sentence {key}"
        try:
            tags = {int(number): str(tag["tag"]) for number, tag in document["tags"].items()}
            sentences.append(_sentence(record, tags, where))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(f"the record is not as expected: {error!r}", where=where) from None
    if len({sentence.id for sentence in sentences}) != len(sentences):
        raise UserError("two sentences have the same idx", where=str(path))
    head = {"name": "GECO", "language": "en", "attribute": "gender"}
    return Labelling(LABELS, tuple(sentences), head)


def _sentence(record: Mapping[str, Any], tags: Mapping[int, str], where: str) -> Sentence:
    words = tuple(str(word) for word in record["sentence"])
    labels: dict[tuple[str, str], dict[int, Label]] = {}
    for version in VERSIONS:
        for name, item in record["versions"][version]["gender"].items():
            if name not in LABELS:
                raise UserError(f"unknown class {name!r}", where=where)
            found = {int(position): _label(label, tags) for position, label in item["labelling"].items()}
            if any(not 0 <= position < len(words) for position in found):
                raise UserError(f"a label of {version} {name} lies outside the sentence", where=where)
            if found:
                labels[version, name] = found
    return Sentence(int(record["idx"]), words, labels, where=where)


def _label(label: Mapping[str, Any], tags: Mapping[int, str]) -> Label:
    if "replacement" in label:
        return Label(form=str(label["replacement"]))
    return Label(tag=tags[int(label["tag"])])


@dataclass(frozen=True)
class Agreement:
    """How a built corpus compares with released rows; ``identical`` and the like count source sentences.

    Attributes:
        sentences: compared source sentences.
        identical: those whose every word is the same.
        words: words of the released rows that have a built word at their position.
        equal_words: words that are the same.
        turned: positions at which the released rows of a sentence differ among themselves or from the built word.
        equal_turned: those at which built and released word are the same.
        faithful: sentences whose male and female words are built as released, so that only the rules can differ.
        faithful_identical: those that are identical.
    """

    sentences: int
    identical: int
    words: int
    equal_words: int
    turned: int
    equal_turned: int
    faithful: int
    faithful_identical: int

    @property
    def turned_share(self) -> float | None:
        """Share of the turned words that agree, or None when there is none."""
        return self.equal_turned / self.turned if self.turned else None


def compare_variants(
    labelling: Labelling, task: Task, version: str, name: str, rules: NeutralRules | None = None
) -> Agreement:
    """Compare the built variants of one class with the rows of a released task, source sentence by source sentence.

    Args:
        labelling: the labelled corpus.
        task: the released task.
        version: ``all`` or ``subj``, that of the task.
        name: the class to compare.
        rules: the neutral rules, needed for class ``neutral``.
    """
    released = _by_sentence(task)
    classes = LABELS if name == "neutral" else LABELS[:2]
    counts = [0] * 8
    for sentence in labelling.sentences:
        if sentence.id not in released:
            continue
        rows = released[sentence.id]
        target = rows[name]
        variants = dict(zip(classes, build_variants(sentence, version, classes, rules=rules), strict=True))
        built = variants[name]
        pairs = list(zip(target, built, strict=False))
        turned = [pair for pair, *forms in zip(pairs, *rows.values(), strict=False) if len({*forms, pair[1]}) > 1]
        counts[0] += 1
        counts[1] += target == built
        counts[2] += len(pairs)
        counts[3] += sum(a == b for a, b in pairs)
        counts[4] += len(turned)
        counts[5] += sum(a == b for a, b in turned)
        faithful = all(variants[label] == rows[label] for label in LABELS[:2])
        counts[6] += faithful
        counts[7] += faithful and target == built
    return Agreement(*counts)


def compare_masks(labelling: Labelling, task: Task, version: str) -> int:
    """The number of source sentences whose binary truth mask is that of the released task."""
    truth = {row.sentence_idx: row.truth for row in (*task.train, *task.test)}
    return sum(
        truth_mask(build_variants(sentence, version, LABELS[:2])) == truth.get(sentence.id)
        for sentence in labelling.sentences
    )


def mask_mismatches(rows: Sequence[Row]) -> set[int]:
    """Source sentences whose mask is not what the mask rule gives for their own variants.

    Args:
        rows: rows of one or both splits of one task, as they stand in the files or repaired.
    """
    variants: dict[int, list[Row]] = {}
    for row in rows:
        variants.setdefault(row.sentence_idx, []).append(row)
    found = set()
    for number, group in variants.items():
        words = [row.words for row in group]
        if len({len(text) for text in words}) > 1 or {row.truth for row in group} != {truth_mask(words)}:
            found.add(number)
    return found


def _by_sentence(task: Task) -> dict[int, dict[str, tuple[str, ...]]]:
    found: dict[int, dict[str, tuple[str, ...]]] = {}
    for row in (*task.train, *task.test):
        found.setdefault(row.sentence_idx, {})[row.gender] = row.words
    return found
