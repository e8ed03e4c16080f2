"""From a labelled corpus to a task: variants, truth masks and the split, as GECO was made (GECOBench, data section).

A source sentence has a variant for each version (``all``, ``subj``) and class. A word is truth when it is not the same
in all variants of the task; so the binary mask compares two words and the non-binary mask three, and a verb that only
agrees with "they" is truth in every non-binary variant. The mask is shared by the variants of a sentence.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, cast

from geco_ray.errors import UserError, unknown_name
from geco_ray.files.text import compare_key
from geco_ray.geco.corpus.labelling import VERSIONS, Label, Labelling, Sentence
from geco_ray.geco.corpus.neutral import NeutralRules
from geco_ray.geco.corpus.writing import write_text
from geco_ray.geco.rows import Row, parse_rows
from geco_ray.geco.task import Task, combine_fingerprint
from geco_ray.seeds import derive_seed

Kind = Literal["binary", "non_binary"]
SPLIT_SEED = 1234
TRAIN_SHARE = 0.8
FILE_ORDER = ("male", "female", "neutral")  # of the variants in the released files

Fill = Mapping[str, Sequence[str]]
"""Tag to the names it may be filled with, for instance ``{"surname": ["Ashdown", ...]}``."""


def split_ids(ids: Sequence[int], *, seed: int = SPLIT_SEED, share: float = TRAIN_SHARE) -> tuple[list[int], list[int]]:
    """Split source sentences: train in the order of the draw, test ascending.

    The draw is Python's ``random.sample`` of ``int(len * share)`` indices under its own generator with ``seed``, which
    is how the released split was made; the global generator is left alone.

    Raises:
        UserError: one of the two splits would be empty.
    """
    ordered = sorted(ids)
    size = int(len(ordered) * share)
    if not 0 < size < len(ordered):
        raise UserError(f"{len(ordered)} source sentences cannot be split into train and test", expected="2 or more")
    train = [ordered[index] for index in random.Random(seed).sample(range(len(ordered)), k=size)]
    return train, sorted(set(ordered) - set(train))


def truth_mask(variants: Sequence[Sequence[str]]) -> tuple[int, ...]:
    """1 for each position at which not all variants have the same word, else 0.

    Words are compared by :func:`~geco_ray.files.text.compare_key`, so another Unicode normal form is no other word.

    Raises:
        ValueError: variants of different lengths.
    """
    return tuple(int(len(set(map(compare_key, forms))) > 1) for forms in zip(*variants, strict=True))


def build_variants(
    sentence: Sentence,
    version: str,
    classes: Sequence[str],
    *,
    rules: NeutralRules | None = None,
    fill: Fill | None = None,
    seed: int = SPLIT_SEED,
) -> tuple[tuple[str, ...], ...]:
    """The variants of a source sentence, one for each class, all of the source's length.

    Args:
        sentence: the labelled sentence.
        version: ``all`` or ``subj``.
        classes: which classes to build, for instance the first two for a binary task.
        rules: derive missing neutral forms by these rules; None: every form must be in the labelling.
        fill: names for tags, one drawn per sentence and tag (a tag ending in ``_pl`` takes the same name with an s);
            None keeps the source's word, as in the released data.
        seed: names the draws.

    Raises:
        UserError: a word that turns but has no neutral form.
    """
    if version not in VERSIONS:
        raise unknown_name("version", version, VERSIONS)
    by_class = {name: sentence.labels.get((version, name), {}) for name in classes}
    if "neutral" in by_class and {"male", "female"} <= set(classes):
        by_class["neutral"] = _neutral(sentence, by_class, rules)
    names = _draw(sentence, fill or {}, seed)
    return tuple(_variant(sentence.words, by_class[name], names) for name in classes)


def build_task(
    labelling: Labelling,
    kind: Kind,
    version: str,
    *,
    name: str | None = None,
    rules: NeutralRules | None = None,
    fill: Fill | None = None,
    split_seed: int = SPLIT_SEED,
    train_share: float = TRAIN_SHARE,
) -> Task:
    """Build one task of a labelled corpus: ``binary`` takes the first two classes, ``non_binary`` all of them.

    Returns:
        the task; its fingerprint is that of the files :func:`write_task` writes.

    Raises:
        UserError: a kind that the classes do not allow, a missing neutral form, too few sentences, an id used twice.
    """
    classes = _classes_of(kind, labelling)
    sentences = {sentence.id: sentence for sentence in labelling.sentences}
    if len(sentences) != len(labelling.sentences):
        raise UserError(
            f"{len(labelling.sentences)} sentences have {len(sentences)} different ids", expected="one each"
        )
    order = sorted(range(len(classes)), key=lambda i: FILE_ORDER.index(classes[i]) if classes[i] in FILE_ORDER else i)
    parts: list[list[Row]] = []
    for ids in split_ids(list(sentences), seed=split_seed, share=train_share):
        rows: list[Row] = []
        for number in ids:
            variants = build_variants(sentences[number], version, classes, rules=rules, fill=fill, seed=split_seed)
            truth = truth_mask(variants)
            for target in order:
                rows.append(Row(variants[target], truth, classes[target], target, number, len(rows) + 1))
        parts.append(rows)
    train, test = map(tuple, parts)
    title = name or f"{kind}_{version}"
    hashes = {split: _sha256(dump_rows(rows)) for split, rows in (("train", train), ("test", test))}
    return Task(title, tuple(classes), train, test, combine_fingerprint(title, hashes))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _classes_of(kind: str, labelling: Labelling) -> tuple[str, ...]:
    if kind not in ("binary", "non_binary"):
        raise unknown_name("kind of task", kind, ("binary", "non_binary"))
    if kind == "non_binary" and len(labelling.classes) < 3:
        raise UserError("a non-binary task needs three classes", found=list(labelling.classes))
    return labelling.classes[:2] if kind == "binary" else labelling.classes


def build_all(
    labelling: Labelling,
    *,
    prefix: str = "",
    rules: NeutralRules | None = None,
    kind: Kind | None = None,
    version: str | None = None,
) -> dict[str, Task]:
    """Every task of a labelling, keyed by ``{prefix}{kind}_{version}``.

    Binary and, with three classes, non-binary, each in both versions; or only those of the given kind and version.
    """
    kinds = [kind] if kind else ["binary", "non_binary"] if len(labelling.classes) > 2 else ["binary"]
    versions = [version] if version else VERSIONS
    names = {f"{prefix}{kind}_{version}": (cast(Kind, kind), version) for kind in kinds for version in versions}
    return {
        name: build_task(labelling, kind, version, name=name, rules=rules) for name, (kind, version) in names.items()
    }


def dump_rows(rows: Sequence[Row]) -> str:
    """Rows as the JSON lines of a GECO file, byte for byte in the release's style."""
    lines = [
        json.dumps(
            {
                "sentence": row.words,
                "ground_truth": row.truth,
                "gender": row.gender,
                "target": row.target,
                "sentence_idx": row.sentence_idx,
            },
            ensure_ascii=False,
        )
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def write_task(task: Task, folder: Path) -> None:
    """Write ``train.jsonl`` and ``test.jsonl``, each whole or not at all, after reading them as the loader will.

    Raises:
        UserError: a row that the loader would refuse, or a folder that cannot be written.
    """
    texts = {}
    for split, rows in (("train", task.train), ("test", task.test)):
        path = folder / f"{split}.jsonl"
        texts[path] = dump_rows(rows)
        parse_rows(texts[path].encode("utf-8", "surrogatepass"), str(path), labels=task.labels)
    for path, text in texts.items():
        write_text(path, text)


def _neutral(
    sentence: Sentence, by_class: Mapping[str, Mapping[int, Label]], rules: NeutralRules | None
) -> Mapping[int, Label]:
    from geco_ray.geco.corpus.neutral import neutral_labels

    male, female, given = by_class["male"], by_class["female"], by_class["neutral"]
    if rules is not None:
        return neutral_labels(sentence.words, male, female, given, rules, sentence.where)
    for position in sorted({*male, *female} - set(given)):
        m, f = male.get(position), female.get(position)
        if (m is None or m.tag is None) and m != f:
            raise UserError(
                f"sentence {sentence.id} has no neutral form of word {position} ({sentence.words[position]!r})",
                where=sentence.where or None,
                remedy="Write it into the labelling, or build with the neutral rules.",
            )
    return given


def _draw(sentence: Sentence, fill: Fill, seed: int) -> dict[str, str]:
    names: dict[str, str] = {}
    tags = {label.tag for labels in sentence.labels.values() for label in labels.values() if label.tag}
    for tag in sorted(tags):
        base = tag.removesuffix("_pl")
        if pool := fill.get(base):
            name = pool[derive_seed("geco", "tag", seed, sentence.id, base) % len(pool)]
            names[tag] = name + "s" if tag != base else name
    return names


def _variant(words: tuple[str, ...], labels: Mapping[int, Label], names: Mapping[str, str]) -> tuple[str, ...]:
    if not labels:
        return words
    variant = list(words)
    for position, label in labels.items():
        if label.form is not None:
            variant[position] = label.form
        elif label.tag is not None and label.tag in names:
            variant[position] = names[label.tag]
    return tuple(variant)
