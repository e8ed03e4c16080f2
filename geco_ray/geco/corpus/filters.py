"""Steps 4 and 5 of a corpus: which sentences tell of one person in the third person. One filter, one function.

After GECOBench (Frontiers in AI 2025, doi 10.3389/frai.2025.1694388, data set section and public notebooks). Each
filter says yes or no to one parsed sentence; the two that need all sentences take and return lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from geco_ray.geco.corpus.parsing import ParsedSentence

MAX_TOKENS = 29  # the paper keeps sentences of fewer than 30 tokens
KINDS = ("proper_noun", "noun", "pronoun")


@dataclass(frozen=True)
class Subject:
    """The subject of a sentence's root: its ``kind``, one of :data:`KINDS`, and its ``text`` as it stands."""

    kind: str
    text: str


@dataclass(frozen=True)
class Candidate:
    """A sentence that may enter the corpus: its words, its subject, and the text it comes from."""

    words: tuple[str, ...]
    subject: Subject
    source: str


def has_third_person_singular_root(sentence: ParsedSentence) -> bool:
    """The root is marked as third person singular ("finds", "is"); "found" and "has found" are not."""
    features = sentence.tokens[sentence.root].features
    return features.get("Person") == "3" and features.get("Number") == "Sing"


def is_short(sentence: ParsedSentence, limit: int = MAX_TOKENS) -> bool:
    """No more than ``limit`` tokens."""
    return len(sentence.tokens) <= limit


def ends_with_full_stop(sentence: ParsedSentence) -> bool:
    """The last token is a full stop, or ends in one."""
    return sentence.tokens[-1].text.endswith(".")


def has_no_neuter_subject(sentence: ParsedSentence) -> bool:
    """The root's subject is not "it"; a sentence without a subject has no neuter one."""
    position = _subject_position(sentence)
    if position is None:
        return True
    token = sentence.tokens[position]
    return token.features.get("Gender") != "Neut" and token.text.lower() != "it"


def has_personal_subject(sentence: ParsedSentence) -> bool:
    """The root's subject is a proper noun, a common noun, or a personal pronoun of male or female gender."""
    return subject_of(sentence) is not None


def subject_of(sentence: ParsedSentence) -> Subject | None:
    """The subject of the root, or None if there is none of the three kinds."""
    position = _subject_position(sentence)
    if position is None:
        return None
    token = sentence.tokens[position]
    if token.pos == "PROPN":
        return Subject("proper_noun", token.text)
    if token.pos == "NOUN":
        return Subject("noun", token.text)
    features = token.features
    if token.pos == "PRON" and features.get("PronType") == "Prs" and features.get("Gender") in ("Masc", "Fem"):
        return Subject("pronoun", token.text)
    return None


def is_allowed(subject: Subject, allowed: Mapping[str, Collection[str]] | None) -> bool:
    """The subject stands in the hand-made list of human subjects of its kind; a kind without a list is all allowed.

    Args:
        subject: of a sentence.
        allowed: kind to the texts that are human; proper nouns are compared as they stand, others in lower case.
    """
    if allowed is None or subject.kind not in allowed:
        return True
    if subject.kind == "proper_noun":
        return subject.text in allowed[subject.kind]
    return subject.text.lower() in {text.lower() for text in allowed[subject.kind]}


def drop_rare_names(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Without the proper-noun subjects that occur once: those are mostly faults of the parser."""
    names = Counter(candidate.subject.text for candidate in candidates if candidate.subject.kind == "proper_noun")
    return [c for c in candidates if c.subject.kind != "proper_noun" or names[c.subject.text] > 1]


def drop_duplicates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The first of every group of sentences with the same words."""
    seen: dict[tuple[str, ...], Candidate] = {}
    for candidate in candidates:
        seen.setdefault(candidate.words, candidate)
    return list(seen.values())


def _subject_position(sentence: ParsedSentence) -> int | None:
    root = sentence.root
    for position, token in enumerate(sentence.tokens):
        if token.head == root and position != root and token.relation == "nsubj":
            return position
    return None
