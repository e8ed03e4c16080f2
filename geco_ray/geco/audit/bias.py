"""How evenly the words of a data set occur together with the gender terms of each class.

GECOBench (Frontiers in AI 2025, doi 10.3389/frai.2025.1694388, co-occurrence bias): with the vocabulary W, the gender
terms A and V = W without A, C(D) counts over all sentences the pairs (a in A, w in V) that occur together, and
bias_C(D^g) = C(D^g) / sum of C over the classes. A data set without bias gives each of k classes 1/k. The paper's
numbers follow from another count than its text; so three readings are offered, see :data:`READINGS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from geco_ray.errors import UserError, unknown_name
from geco_ray.files.text import compare_key, same_text
from geco_ray.files.yaml_lines import Strictness, decode_text, is_missing, line_of, read_yaml
from geco_ray.geco.audit.audit import Split, read_splits
from geco_ray.geco.data.sources import GECO_TASKS
from geco_ray.geco.rows import Row, read_bytes

READINGS: Mapping[str, str] = MappingProxyType(
    {
        "paper": "each group of the class's own terms that occurs counts all words of the sentence; V = W",
        "paper-V": "as paper, but the gender terms themselves are not counted; V = W without A",
        "literal": "all gender terms for every class; distinct terms times distinct other words of each sentence",
    }
)
"""Reading to what it counts. ``paper`` reproduces the published numbers, truncated to two decimals."""

_SHAPE = "class: [word, [form, form], ...]"
_UNCOUNTED = frozenset({",", "."})  # the two readings of the paper leave these out, the literal one does not


@dataclass(frozen=True)
class Terms:
    """The terms A of an attribute.

    Attributes:
        groups: class name to its groups of terms; terms in a group are forms of one (``him`` and ``his`` stand for
            the one ``her``), so that no class counts more often than another for its grammar alone.
        others: further terms of A, used by the literal reading only.
    """

    groups: Mapping[str, tuple[frozenset[str], ...]]
    others: frozenset[str] = frozenset()

    @property
    def grouped(self) -> frozenset[str]:
        """All terms that stand in a group."""
        return frozenset().union(*(group for groups in self.groups.values() for group in groups))

    def as_compared(self) -> Terms:
        """The same with every class name and term in the form in which texts are compared."""
        groups = {
            compare_key(name): tuple(frozenset(map(compare_key, group)) for group in groups)
            for name, groups in self.groups.items()
        }
        return Terms(MappingProxyType(groups), frozenset(map(compare_key, self.others)))


GENDER_TERMS = Terms(
    MappingProxyType(
        {
            "female": (frozenset({"she"}), frozenset({"her"})),
            "male": (frozenset({"he"}), frozenset({"him", "his"})),
            "neutral": (frozenset({"they"}), frozenset({"them", "their"})),
        }
    ),
    frozenset({"hers", "herself", "himself", "theirs", "themself", "themselves"}),
)
"""The English pronouns. The published numbers cover male and female; neutral extends them in the same way."""


def read_terms(path: Path) -> Terms:
    """Read terms from YAML: class name to a list of terms, each a word or the list of its forms, in lower case.

    The key ``others`` lists further terms that the literal reading alone uses.

    Raises:
        UserError: it cannot be read, or is not of that shape; file and line are named.
    """
    text = decode_text(read_bytes(path), str(path))
    given = read_yaml(text, lambda line: f"{path}:{line}", Strictness("word lists", "text", spaced_comments=True)).value
    if not isinstance(given, dict) or not all(isinstance(terms, list) and terms for terms in given.values()):
        raise UserError("terms are a list for each class", where=str(path), expected=_SHAPE)
    groups: dict[str, tuple[frozenset[str], ...]] = {}
    for name, terms in given.items():
        where = f"{path}:{line_of(name, 1)}"
        if any(same_text(name, other) for other in groups):
            raise UserError(f"the class {name!r} is given twice", where=where, remedy="Keep one of them")
        groups[str(name)] = tuple(_group(term, where) for term in terms)
    others = frozenset().union(*groups.pop("others", ()))
    return Terms(MappingProxyType(groups), others)


def _group(term: object, where: str) -> frozenset[str]:
    """The forms of one term, in the form in which words are compared."""
    forms = term if isinstance(term, list) else [term]
    for form in forms:
        if not isinstance(form, str) or is_missing(form) or form != form.strip().lower() or not form:
            where = f"{where.rpartition(':')[0]}:{line_of(form, int(where.rpartition(':')[2]))}"
            raise UserError("a term is a word in lower case or a list of its forms", where=where, expected=_SHAPE)
    return frozenset(map(str, forms))


def count_cooccurrences(
    rows: Sequence[Row], labels: Sequence[str], reading: str = "paper", terms: Terms = GENDER_TERMS
) -> dict[str, int]:
    """C(D^g) for every class g, by class name.

    Words are compared in lower case by :func:`~geco_ray.files.text.compare_key`; a blank word counts as a word.

    Raises:
        UserError: an unknown reading, or a class that has no terms.
    """
    if reading not in READINGS:
        raise unknown_name("reading of the bias", reading, READINGS)
    terms = terms.as_compared()
    for label in labels:
        if compare_key(label) not in terms.groups:
            raise UserError(f"no gender terms for the class {label!r}", remedy="Give terms for every class.")
    counts = dict.fromkeys(labels, 0)
    for row in rows:
        words = [compare_key(word.lower()) for word in row.words]
        if reading == "literal":
            counts[row.gender] += _count_types(words, terms)
        else:
            counts[row.gender] += _count_groups(words, terms, row.gender, keep_terms=reading == "paper")
    return counts


def _count_groups(words: Sequence[str], terms: Terms, label: str, *, keep_terms: bool) -> int:
    present = set(words)
    left_out = _UNCOUNTED if keep_terms else _UNCOUNTED | terms.grouped
    counted = sum(word not in left_out for word in words)
    return counted * sum(bool(group & present) for group in terms.groups[compare_key(label)])


def _count_types(words: Sequence[str], terms: Terms) -> int:
    present, everything = set(words), terms.grouped | terms.others
    return len(present & everything) * len(present - everything)


def bias_of_splits(
    splits: Sequence[Split], readings: Sequence[str] = tuple(READINGS), terms: Terms = GENDER_TERMS
) -> pa.Table:
    """C(D) and bias_C of each task in ``splits``, for its train file and for both files together.

    Returns:
        Columns task, scope (``train`` or ``train+test``), reading, label, cooccurrences, bias (null where no class
        has a co-occurrence), reason, ideal (1/k).
    """
    records: list[dict[str, object]] = []
    for task in dict.fromkeys(split.task for split in splits):
        own = [split for split in splits if split.task == task]
        scopes = {"train": [s for s in own if s.split == "train"], "train+test": own}
        for scope, parts in scopes.items():
            rows = [row for part in parts for row in part.rows]
            for reading in readings:
                counts = count_cooccurrences(rows, own[0].labels, reading, terms)
                records += _shares({"task": task, "scope": scope, "reading": reading}, counts)
    return pa.Table.from_pylist(records, schema=_SCHEMA)


_SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("scope", pa.string()),
        ("reading", pa.string()),
        ("label", pa.string()),
        ("cooccurrences", pa.int64()),
        ("bias", pa.float64()),
        ("reason", pa.string()),
        ("ideal", pa.float64()),
    ]
)


def _shares(key: Mapping[str, object], counts: Mapping[str, int]) -> list[dict[str, object]]:
    total = sum(counts.values())
    return [
        {
            **key,
            "label": label,
            "cooccurrences": count,
            "bias": count / total if total else None,
            "reason": None if total else "no_cooccurrence",
            "ideal": 1 / len(counts),
        }
        for label, count in counts.items()
    ]


def bias_of_tasks(
    names: Sequence[str] = GECO_TASKS,
    data_dir: Path | None = None,
    readings: Sequence[str] = tuple(READINGS),
    terms: Terms = GENDER_TERMS,
) -> pa.Table:
    """:func:`bias_of_splits` of whole tasks, from the files as they stand (the loader's repairs would add words)."""
    return bias_of_splits([split for name in names for split in read_splits(name, data_dir)], readings, terms)
