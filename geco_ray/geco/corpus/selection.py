"""From texts to the sentences that a person then selects and labels, with every dropped sentence accounted for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from geco_ray.geco.corpus import filters
from geco_ray.geco.corpus.filters import Candidate, subject_of
from geco_ray.geco.corpus.labelling import Labelling, Sentence
from geco_ray.geco.corpus.parsing import ParsedSentence, Parser
from geco_ray.geco.rows import LABELS

_SENTENCE_FILTERS: tuple[tuple[str, Callable[[ParsedSentence], bool]], ...] = (
    ("third_person_singular_root", filters.has_third_person_singular_root),
    ("short", filters.is_short),
    ("full_stop", filters.ends_with_full_stop),
    ("no_neuter_subject", filters.has_no_neuter_subject),
    ("personal_subject", filters.has_personal_subject),
)
STEPS = (*(name for name, _ in _SENTENCE_FILTERS), "allowed_subject", "no_rare_name", "no_duplicate")
"""The filters in their order; a sentence is dropped by the first that refuses it."""


@dataclass(frozen=True)
class Dropped:
    """A sentence that was not taken, and the step that refused it."""

    words: tuple[str, ...]
    source: str
    step: str


@dataclass(frozen=True)
class Selection:
    """The sentences that passed, in the order of the texts, and those that did not; together they are all."""

    candidates: tuple[Candidate, ...]
    dropped: tuple[Dropped, ...]

    def steps(self) -> pa.Table:
        """One row per step: how many sentences came in, were dropped and were kept."""
        left = len(self.candidates) + len(self.dropped)
        records = []
        for step in STEPS:
            dropped = sum(item.step == step for item in self.dropped)
            records.append({"step": step, "sentences": left, "dropped": dropped, "kept": left - dropped})
            left -= dropped
        return pa.Table.from_pylist(records)

    def subjects(self) -> dict[str, int]:
        """Number of sentences for each kind of subject."""
        kinds = [candidate.subject.kind for candidate in self.candidates]
        return {kind: kinds.count(kind) for kind in filters.KINDS}


def select_sentences(
    texts: Mapping[str, Iterable[str]],
    parser: Parser,
    allowed: Mapping[str, Collection[str]] | None = None,
) -> Selection:
    """Run every filter over the paragraphs of some sources.

    Args:
        texts: source (such as a title) to its paragraphs.
        parser: see :class:`~geco_ray.geco.corpus.parsing.Parser`.
        allowed: hand-made lists of human subjects by kind, see :func:`~geco_ray.geco.corpus.filters.is_allowed`.
    """
    candidates: list[Candidate] = []
    dropped: list[Dropped] = []
    for source, paragraphs in texts.items():
        for paragraph in paragraphs:
            for sentence in parser(paragraph):
                step = _refusing_step(sentence, allowed)
                subject = subject_of(sentence)
                if step is not None or subject is None:
                    dropped.append(Dropped(sentence.words, source, step or "personal_subject"))
                else:
                    candidates.append(Candidate(sentence.words, subject, source))
    for step, sieve in (("no_rare_name", filters.drop_rare_names), ("no_duplicate", filters.drop_duplicates)):
        kept = sieve(candidates)
        passed = set(map(id, kept))
        dropped += [Dropped(c.words, c.source, step) for c in candidates if id(c) not in passed]
        candidates = kept
    return Selection(tuple(candidates), tuple(dropped))


def draft_labelling(selection: Selection, classes: Sequence[str] = LABELS, name: str = "draft") -> Labelling:
    """The selected sentences as a labelling without labels, to be selected from and labelled by hand.

    The note of each sentence holds its source and its subject.
    """
    sentences = tuple(
        Sentence(number, candidate.words, {}, note=f"{candidate.source}; subject: {candidate.subject.text}")
        for number, candidate in enumerate(selection.candidates)
    )
    return Labelling(tuple(classes), sentences, {"name": name, "language": "en"})


def _refusing_step(sentence: ParsedSentence, allowed: Mapping[str, Collection[str]] | None) -> str | None:
    for name, accepts in _SENTENCE_FILTERS:
        if not accepts(sentence):
            return name
    subject = subject_of(sentence)
    return None if subject is None or filters.is_allowed(subject, allowed) else "allowed_subject"
