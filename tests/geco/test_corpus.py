"""The corpus pipeline on pages and sentences written for these tests."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from geco_ray.errors import UserError
from geco_ray.geco.corpus import (
    STEPS,
    Book,
    ParsedSentence,
    SpacyParser,
    Token,
    draft_labelling,
    read_book_list,
    read_paragraphs,
    select_sentences,
    strip_references,
)
from geco_ray.geco.corpus import filters as f
from geco_ray.geco.corpus.filters import Candidate, Subject
from geco_ray.geco.corpus.labelling import dump_labelling, parse_labelling

LIST = """
<h1>Most read</h1><ul><li>not this by Nobody (9)</li></ul>
<ol>
 <li><a href="/b/1">The Blue Door by Ada Finch (1234)</a></li>
 <li>Side by Side by Jo&atilde;o Silva (77)
 <li>Old Songs (12)</li>
 <li>Letters (Vol. 2) by K. &amp; L. Mann (5)</li>
 <li></li>
</ol>
<ol><li>yesterday's by Someone (3)</li></ol>
"""


def test_the_first_ordered_list_gives_titles_and_authors() -> None:
    assert read_book_list(LIST) == [
        Book("The Blue Door", "Ada Finch"),
        Book("Side by Side", "João Silva"),
        Book("Old Songs", None),
        Book("Letters (Vol. 2)", "K. & L. Mann"),
    ]


def test_a_list_in_an_item_belongs_to_the_item() -> None:
    page = "<ol><li>A Tale<ul><li>in two parts</li></ul></li><li>B by C (1)</li></ol>"
    assert read_book_list(page) == [Book("A Tale in two parts", None), Book("B", "C")]


@pytest.mark.parametrize(
    "page", ["", "<ul><li>x by y</li></ul>", "<ol></ol>", "<ol><li> </li></ol><ol><li>a</li></ol>"]
)
def test_a_page_without_a_list_is_refused(page: str) -> None:
    with pytest.raises(UserError, match="ordered list"):
        read_book_list(page)


ARTICLE = """
<html><head><style>p {color: red}</style><title>T</title></head><body>
<h2>Plot</h2>
<p>Ada opens the <b>door</b>.<sup class="reference">[1]</sup> She
   enters.</p>
<ul><li>no paragraph</li></ul>
<p>An open one[<i>citation needed</i>] with <script>var x = "<p>no</p>";</script>a line<br>break
<div>outside</div>
<table><tr><td><p>In a table &amp; more.</p></td></tr></table>
<p> [2] </p>
<p>Last
</body></html>
"""


def test_paragraphs_are_text_without_marks_scripts_and_blanks() -> None:
    assert read_paragraphs(ARTICLE) == [
        "Ada opens the door. She enters.",
        "An open one with a line break",
        "In a table & more.",
        "Last",
    ]


def test_a_page_without_paragraphs_has_none() -> None:
    assert read_paragraphs("<h1>Title</h1>text") == []


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("He goes.[1][23] She stays.[note 4]", "He goes. She stays."),
        ("a [b [c] d] e", "a e"),
        ("a ] b [ c", "a ] b [ c"),
        ("keep (this) and {that}", "keep (this) and {that}"),
        ("two\nlines [x\ny] more", "two lines more"),
        ("[1]", ""),
    ],
)
def test_reference_marks_go_and_everything_else_stays(text: str, stripped: str) -> None:
    assert strip_references(text) == stripped


VERB = {"Person": "3", "Number": "Sing", "Tense": "Pres"}
SHE = {"PronType": "Prs", "Gender": "Fem"}


def sentence(
    subject: Token | None, rest: str = "finds it .", verb: dict[str, str] | None = None, relation: str = "nsubj"
) -> ParsedSentence:
    """``subject`` and a root with ``verb`` as its features, followed by words that hang on the root."""
    first, *others = rest.split()
    start = 0 if subject is None else 1
    root = Token(first, "VERB", "ROOT", start, VERB if verb is None else verb)
    tail = [Token(word, "X", "dep", start) for word in others]
    head = [] if subject is None else [Token(subject.text, subject.pos, relation, 1, subject.features)]
    return ParsedSentence((*head, root, *tail))


def word(text: str, pos: str, **features: str) -> Token:
    return Token(text, pos, "nsubj", 1, features)


ADA, CLERK, PRONOUN, IT = word("Ada", "PROPN"), word("clerk", "NOUN"), word("She", "PRON", **SHE), word("It", "PRON")


@pytest.mark.parametrize(
    ("features", "accepted"),
    [
        (VERB, True),
        ({"Person": "3", "Number": "Plur"}, False),
        ({"Person": "1", "Number": "Sing"}, False),
        ({"Tense": "Past", "VerbForm": "Part"}, False),
        ({}, False),
    ],
)
def test_root_filter(features: dict[str, str], accepted: bool) -> None:
    assert f.has_third_person_singular_root(sentence(ADA, verb=features)) is accepted


def test_root_filter_looks_at_the_root_only() -> None:
    other = ParsedSentence((Token("runs", "VERB", "ccomp", 1, VERB), Token("said", "VERB", "ROOT", 1, {})))
    assert not f.has_third_person_singular_root(other)


@pytest.mark.parametrize(("length", "accepted"), [(1, True), (29, True), (30, False)])
def test_length_filter_keeps_fewer_than_thirty_tokens(length: int, accepted: bool) -> None:
    assert f.is_short(sentence(None, " ".join(["w"] * length))) is accepted


@pytest.mark.parametrize(
    ("rest", "accepted"), [("finds it .", True), ("leaves etc.", True), ("finds it !", False), ("finds it", False)]
)
def test_full_stop_filter(rest: str, accepted: bool) -> None:
    assert f.ends_with_full_stop(sentence(ADA, rest)) is accepted


@pytest.mark.parametrize(
    ("subject", "accepted"),
    [(ADA, True), (PRONOUN, True), (None, True), (IT, False), (word("that", "PRON", Gender="Neut"), False)],
)
def test_neuter_filter(subject: Token | None, accepted: bool) -> None:
    assert f.has_no_neuter_subject(sentence(subject)) is accepted


def test_neuter_filter_lets_it_pass_as_an_object() -> None:
    assert f.has_no_neuter_subject(sentence(IT, relation="obj"))


@pytest.mark.parametrize(
    ("subject", "kind"),
    [
        (ADA, "proper_noun"),
        (CLERK, "noun"),
        (PRONOUN, "pronoun"),
        (word("He", "PRON", PronType="Prs", Gender="Masc"), "pronoun"),
        (word("They", "PRON", PronType="Prs"), None),
        (word("who", "PRON", PronType="Rel", Gender="Masc"), None),
        (word("Running", "VERB"), None),
        (None, None),
    ],
)
def test_subject_filter_and_its_kinds(subject: Token | None, kind: str | None) -> None:
    found = f.subject_of(sentence(subject))
    assert (found.kind if found else None) == kind
    assert f.has_personal_subject(sentence(subject)) is (kind is not None)


def test_the_subject_is_that_of_the_root() -> None:
    tokens = (
        Token("says", "VERB", "ROOT", 0, VERB),
        Token("Ada", "PROPN", "nsubj", 2),
        Token("goes", "VERB", "ccomp", 0),
        Token("clerk", "NOUN", "nsubjpass", 0),
    )
    assert f.subject_of(ParsedSentence(tokens)) is None


@pytest.mark.parametrize(
    ("subject", "accepted"),
    [
        (Subject("noun", "Clerk"), True),
        (Subject("noun", "horse"), False),
        (Subject("proper_noun", "Ada"), True),
        (Subject("proper_noun", "ada"), False),
        (Subject("pronoun", "She"), True),
    ],
)
def test_the_lists_of_human_subjects(subject: Subject, accepted: bool) -> None:
    allowed = {"noun": {"clerk"}, "proper_noun": ["Ada"]}
    assert f.is_allowed(subject, allowed) is accepted
    assert f.is_allowed(subject, None)


def candidate(text: str, kind: str = "pronoun", subject: str = "She") -> Candidate:
    return Candidate(tuple(text.split()), Subject(kind, subject), "book")


def test_names_that_occur_once_are_dropped_other_subjects_are_not() -> None:
    twice = [candidate("a", "proper_noun", "Ada"), candidate("b", "proper_noun", "Ada")]
    once, noun = candidate("c", "proper_noun", "Thursday"), candidate("d", "noun", "clerk")
    assert f.drop_rare_names([twice[0], once, noun, twice[1]]) == [twice[0], noun, twice[1]]


def test_the_first_of_equal_sentences_stays() -> None:
    first, other, again = candidate("a b"), candidate("a c"), Candidate(("a", "b"), Subject("noun", "x"), "other")
    assert f.drop_duplicates([first, other, again]) == [first, other]


class FixedParser:
    """A parser that knows a handful of sentences, one per full stop or exclamation mark."""

    def __call__(self, text: str) -> Iterator[ParsedSentence]:
        known = {"Ada": ADA, "clerk": CLERK, "She": PRONOUN, "It": IT, "Thursday": word("Thursday", "PROPN")}
        for line in text.split("\n"):
            first, rest = line.split(" ", 1)
            yield sentence(known.get(first), rest, {} if " found " in f" {rest} " else None)


def test_every_sentence_is_kept_or_dropped_by_a_named_step() -> None:
    texts = {
        "A": ["Ada finds it .\nAda found it .\nShe finds it !\nIt finds her .", "They finds it .\nclerk finds it ."],
        "B": ["Ada reads .\nThursday comes .\nAda finds it .\nAda " + "reads " * 29 + "."],
    }
    result = select_sentences(texts, FixedParser(), {"noun": {"butler"}})
    assert [(c.source, " ".join(c.words)) for c in result.candidates] == [("A", "Ada finds it ."), ("B", "Ada reads .")]
    assert {d.step: " ".join(d.words)[:14] for d in result.dropped} == {
        "third_person_singular_root": "Ada found it .",
        "short": "Ada reads read",
        "full_stop": "She finds it !",
        "no_neuter_subject": "It finds her .",
        "personal_subject": "finds it .",
        "allowed_subject": "clerk finds it",
        "no_rare_name": "Thursday comes",
        "no_duplicate": "Ada finds it .",
    }
    steps = result.steps().to_pylist()
    assert [step["step"] for step in steps] == list(STEPS)
    assert [step["kept"] for step in steps] == [9, 8, 7, 6, 5, 4, 3, 2]
    assert all(step["sentences"] - step["dropped"] == step["kept"] for step in steps)
    assert result.subjects() == {"proper_noun": 2, "noun": 0, "pronoun": 0}


def test_a_draft_can_be_read_as_a_labelling() -> None:
    result = select_sentences({"A": ["Ada finds it .\nAda reads ."]}, FixedParser())
    read = parse_labelling(dump_labelling(draft_labelling(result)).encode(), "draft.jsonl")
    assert [sentence.words for sentence in read.sentences] == [("Ada", "finds", "it", "."), ("Ada", "reads", ".")]
    assert read.sentences[1].note == "A; subject: Ada"


@pytest.mark.parametrize("heads", [[], [1, 0], [0, 1], [0, 5]], ids=["empty", "no root", "two roots", "outside"])
def test_a_parser_that_gives_no_tree_is_a_fault(heads: list[int]) -> None:
    with pytest.raises(ValueError, match="one root"):
        ParsedSentence(tuple(Token("w", "X", "dep", head) for head in heads))


@dataclass(eq=False)
class FakeToken:
    """The attributes of a spaCy token that the conversion reads."""

    i: int
    text: str
    pos_: str
    dep_: str
    features: dict[str, str] = field(default_factory=dict)
    head: FakeToken | None = None

    @property
    def is_space(self) -> bool:
        return not self.text.strip()

    @property
    def morph(self) -> SimpleNamespace:
        return SimpleNamespace(to_dict=lambda: self.features)


class FakeSpan(list[FakeToken]):
    @property
    def root(self) -> FakeToken:
        return next(token for token in self if token.head is token)


def test_spacy_sentences_become_ours_without_blank_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    blank, she = FakeToken(7, "\n ", "SPACE", "dep"), FakeToken(8, "She", "PRON", "nsubj", SHE)
    reads, stop = FakeToken(9, "reads", "VERB", "ROOT", VERB), FakeToken(10, ".", "PUNCT", "punct")
    for token in (blank, she, reads, stop):
        token.head = reads
    only_blank = FakeToken(11, " ", "SPACE", "ROOT")
    only_blank.head = only_blank
    module = types.ModuleType("spacy")
    spans = [FakeSpan([blank, she, reads, stop]), FakeSpan([only_blank])]
    module.load = lambda model: lambda text: SimpleNamespace(sents=spans)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spacy", module)
    (found,) = SpacyParser("any")("text")
    assert found.words == ("She", "reads", ".")
    assert [token.head for token in found.tokens] == [1, 1, 1]
    assert f.subject_of(found) == Subject("pronoun", "She")
    assert f.has_third_person_singular_root(found)


def test_without_spacy_or_its_model_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(UserError, match="pip install spacy"):
        SpacyParser()
    module = types.ModuleType("spacy")

    def load(model: str) -> None:
        raise OSError(f"[E050] Can't find model '{model}'")

    module.load = load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spacy", module)
    with pytest.raises(UserError, match="spacy download en_core_web_sm"):
        SpacyParser()
