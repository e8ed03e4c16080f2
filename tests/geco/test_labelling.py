"""The labelling format is pleasant when it is right and exact about the line when it is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geco_ray.errors import UserError
from geco_ray.geco.corpus.labelling import (
    FORMAT,
    Label,
    Labelling,
    Sentence,
    load_labelling,
    parse_labelling,
)
from geco_ray.geco.corpus.markup import parse_markup
from geco_ray.geco.corpus.writing import dump_labelling, write_labelling

CLASSES = ("female", "male", "neutral")
HEAD = f"format: {FORMAT}\nclasses: [female, male, neutral]\nsentences:\n"  # three lines


def parse(text: str) -> Labelling:
    return parse_labelling(text.encode(), "corpus.yaml")


def forms(labelling: Labelling, version: str, name: str, sentence: int = 0) -> dict[int, str | None]:
    labels = labelling.sentences[sentence].labels.get((version, name), {})
    return {position: label.form for position, label in labels.items()}


def test_a_marked_sentence_becomes_words_and_labels() -> None:
    corpus = parse(HEAD + "  - (She|He|They) (sees||see) (her|his|their) (mother|father*|parent's parent) .\n")
    (sentence,) = corpus.sentences
    assert sentence.words == ("She", "sees", "her", "father", ".")
    assert (sentence.id, sentence.where) == (0, "corpus.yaml:4")
    assert forms(corpus, "all", "female") == {0: "She", 1: "sees", 2: "her", 3: "mother"}
    assert forms(corpus, "all", "male") == {0: "He", 1: "sees", 2: "his", 3: "father"}
    assert forms(corpus, "all", "neutral") == {0: "They", 1: "see", 2: "their", 3: "parent's parent"}
    assert forms(corpus, "subj", "female") == {0: "She", 1: "sees", 2: "her"}
    assert forms(corpus, "subj", "neutral") == {0: "They", 1: "see", 2: "their"}


def test_the_source_has_two_persons_of_different_gender() -> None:
    words, _ = parse_markup("(She|He|They) thanks (her|his|their) (mother*|father|parent)", CLASSES, "x")
    assert words == ["He", "thanks", "his", "mother"]
    words, _ = parse_markup("(She|He|They) thanks (her|his|their) (mother|father|parent*)", CLASSES, "x")
    assert words == ["She", "thanks", "her", "parent"]


def test_brackets_without_a_bar_are_words() -> None:
    words, slots = parse_markup("( once ) (she|he|they) left", CLASSES, "x")
    assert words == ["(", "once", ")", "she", "left"]
    assert [slot.position for slot in slots] == [3]


def test_the_last_form_may_be_left_to_the_rules() -> None:
    corpus = parse(HEAD + "  - (She|He) opens the door .\n")
    assert forms(corpus, "all", "male") == {0: "He"}
    assert ("all", "neutral") not in corpus.sentences[0].labels


def test_explicit_labels_with_tags_and_words_that_look_like_other_types() -> None:
    text = HEAD + (
        "  - id: 12\n    text: Yes , Lady Norton says no .\n    note: a test\n    labels:\n"
        "      all: {female: {2: Lady, 3: {tag: surname}, 5: no}, male: {2: Lord, 3: {tag: surname}}}\n"
    )
    (sentence,) = parse(text).sentences
    assert sentence.id == 12
    assert sentence.note == "a test"
    assert sentence.label("all", "female", 5) == Label(form="no")
    assert sentence.label("all", "male", 3) == Label(tag="surname")
    assert sentence.label("subj", "male", 3) is None


def test_only_a_neutral_form_may_be_left_out() -> None:
    with pytest.raises(UserError, match="wrong number of forms"):
        parse_markup("(young|old) cooks sing", ("young", "old", "middle"), "x")
    with pytest.raises(UserError, match="wrong number of forms"):
        parse_markup("(a|b) c", ("a", "b", "c", "neutral"), "x")


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="(|)* abé\n'\"-:[]{}#&", max_size=60))
def test_any_sentence_is_read_or_refused(text: str) -> None:
    for data, name in ((HEAD + "  - " + text, "c.yaml"), (json.dumps({"format": FORMAT}) + "\n" + text, "c.jsonl")):
        try:
            labelling = parse_labelling(data.encode(), name)
        except UserError as error:
            assert str(error).startswith(name)  # noqa: PT017 (either outcome is right)
        else:
            assert dump_labelling(parse_labelling(dump_labelling(labelling).encode(), "d.jsonl")) == dump_labelling(
                labelling
            )


def test_writing_and_reading_gives_the_same_labelling(tmp_path: Path) -> None:
    corpus = parse(
        HEAD + "  - (She|He|They) (is||are) the (mother|father*|parent) .\n  - id: 9\n    words: [a b, ' ']\n"
    )
    path = tmp_path / "new" / "corpus.jsonl"
    write_labelling(corpus, path)
    again = load_labelling(path)
    assert dump_labelling(again) == dump_labelling(corpus)
    assert [s.words for s in again.sentences] == [s.words for s in corpus.sentences]
    assert again.sentences[1].where == f"{path}:3"
    assert [entry.name for entry in path.parent.iterdir()] == ["corpus.jsonl"]
    with pytest.raises(UserError, match="name ending in"):
        write_labelling(corpus, tmp_path / "corpus.txt")


BAD_YAML = {
    "empty": ("", 0, "the file is empty"),
    "list": ("- a\n", 1, "'sentences' with a list"),
    "no_sentences": (f"format: {FORMAT}\n", 1, "'sentences' with a list"),
    "none_inside": (HEAD.replace("sentences:", "sentences: []"), 0, "the file has no sentences"),
    "syntax": (HEAD + "  - a\n  b: [\n", 5, "not valid YAML"),
    "control": (HEAD + "  - é (She|He) \x07 left .\n", 4, "control characters are not allowed"),
    "deep": (HEAD + "  - " + "[" * 20_000, 4, "nested more than 20 deep"),
    "alias": (HEAD + "  - &a (She|He) left\n  - *a\n", 4, "no anchors and aliases"),
    "format": (HEAD.replace("labelling 1", "labelling 7") + "  - (a|b) c\n", 1, "not a labelling of this format"),
    "head_key": ("languge: en\n" + HEAD + "  - (a|b) c\n", 1, "unknown key 'languge'. Did you mean 'language'"),
    "head_twice": (f"format: {FORMAT}\n" + HEAD, 2, "the key 'format' is given twice"),
    "head_type": ("name: [a]\n" + HEAD + "  - (a|b) c\n", 1, "name must be a text"),
    "classes": (HEAD.replace("[female, male, neutral]", "female") + "  - (a|b) c\n", 2, "classes must be a list"),
    "one_class": (
        HEAD.replace("[female, male, neutral]", "[female, female]") + "  - (a|b) c\n",
        2,
        "two or more different names",
    ),
    "entry": (HEAD + "  - (She|He) left .\n  - [a]\n", 5, "a marked text or a mapping"),
    "entry_key": (HEAD + "  - id: 1\n    txt: a\n", 5, "unknown key 'txt'. Did you mean 'text'"),
    "both": (HEAD + "  - text: a\n    words: [a]\n", 4, "either text or words"),
    "id": (HEAD + "  - id: one\n    text: (She|He) left .\n", 4, "id must be a whole number"),
    "id_long": (HEAD + f"  - id: {'9' * 5000}\n    text: (She|He) left .\n", 4, "id must be a whole number"),
    "id_twice": (HEAD + "  - (She|He) left .\n  - id: 0\n    text: (She|He) ran .\n", 5, "corpus.yaml:4 already"),
    "no_slot": (HEAD + "  - She left .\n", 4, "no word of the sentence is marked"),
    "open": (HEAD + "  - (She|He left .\n", 4, "cannot read the slot"),
    "glued": (HEAD + "  - (She|He)'s hat\n", 4, "a blank is missing before"),
    "many": (HEAD + "  - (a|b|c|d) left\n", 4, "wrong number of forms (found 4"),
    "first_empty": (HEAD + "  - (|b|c) left\n", 4, "is empty"),
    "two_stars": (HEAD + "  - (a*|b*|c) left\n", 4, "two stars"),
    "blank_words": (HEAD + "  - words: [' ']\n", 4, "the sentence is empty"),
    "long": (HEAD + "  - (She|He) " + "a " * 10_000 + "\n", 4, "has 10001 words"),
    "version": (
        HEAD + "  - text: a b\n    labels:\n      subject: {female: {0: x}}\n",
        6,
        "unknown key 'subject' in labels. Did you mean 'subj'",
    ),
    "class": (HEAD + "  - text: a b\n    labels:\n      all:\n        femal: {0: x}\n", 7, "Did you mean 'female'"),
    "positions": (HEAD + "  - text: a b\n    labels:\n      all:\n        female: [x]\n", 7, "map positions to forms"),
    "position": (
        HEAD + "  - text: a b\n    labels:\n      all:\n        female:\n          0: x\n          2: y\n",
        9,
        "a position must be a whole number from 0 to 1, not '2'",
    ),
    "label": (HEAD + "  - text: a b\n    labels:\n      all:\n        female: {0: {tg: x}}\n", 7, "a form, or {tag"),
}


@pytest.mark.parametrize("case", BAD_YAML)
def test_every_fault_of_a_yaml_file_has_its_line(case: str) -> None:
    text, line, message = BAD_YAML[case]
    with pytest.raises(UserError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"corpus.yaml:{line}: " if line else "corpus.yaml: ")


BAD_JSONL = {
    "long_number": ('{"id": ' + "9" * 5000 + ', "words": ["a"]}', "too long a number"),
    "blank": ("\n", "the line is blank"),
    "json": ("{", "invalid JSON at column"),
    "twice": ('{"id": 0, "id": 1}', "the key 'id' is given twice"),
    "bool": ('{"id": true, "words": ["a"]}', "id must be a whole number"),
    "float": ('{"id": 1.0, "words": ["a"]}', "id must be a whole number"),
    "words": ('{"words": ["a", 1]}', "words must be a list of words"),
    "range": ('{"words": ["a"], "labels": {"all": {"male": {"1": "b"}}}}', "from 0 to 0, not '1'"),
    "number": ('{"words": ["a"], "labels": {"all": {"male": {"0": 3}}}}', "a label is a form"),
    "array": ("[]", "a marked text or a mapping"),
}


@pytest.mark.parametrize("case", BAD_JSONL)
def test_every_fault_of_a_jsonl_file_has_its_line(case: str) -> None:
    bad, message = BAD_JSONL[case]
    lines = [json.dumps({"format": FORMAT}), '{"id": 7, "words": ["a"]}', bad]
    with pytest.raises(UserError) as caught:
        parse_labelling("\n".join([*lines, ""]).encode(), "c.jsonl")
    assert message in str(caught.value)
    assert str(caught.value).startswith("c.jsonl:3: ")


def test_a_file_that_is_not_utf8_or_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"corpus\.yaml:2: not UTF-8 text"):
        parse_labelling(b"a: b\nc: \xff\n", "corpus.yaml")
    with pytest.raises(UserError, match="cannot read the file"):
        load_labelling(tmp_path / "none.yaml")


MORE_BAD_YAML = {
    "hash": (HEAD + "  - (She|He) is our #1 cook .\n", 4, "Put the text in quotes"),
    "hash_in_text": (HEAD + "  - id: 3\n    text: (She|He) draws a # .\n", 5, "Put the text in quotes"),
    "colon": (HEAD + "  - (She|He) said: the soup is hot .\n", 4, "Put the sentence in quotes"),
    "question": (HEAD + "  - ? (She|He) left .\n", 4, "Put the sentence in quotes"),
    "bang": (HEAD + "  - !Oh (she|he) left .\n", 4, "no YAML tags"),
    "null_form": (HEAD + "  - text: a b\n    labels: {all: {male: {0: null}}}\n", 5, "where a text is meant"),
    "no_form": (HEAD + "  - text: a b\n    labels:\n      all:\n        male:\n          0:\n", 8, "is left out"),
    "null_word": (HEAD + "  - words: [a, ~]\n", 4, "where a text is meant"),
    "position_twice": (HEAD + "  - text: a b\n    labels: {all: {male: {0: x, 00: y}}}\n", 5, "given twice"),
    "class_twice": (
        HEAD.replace("female, male", "caf\u00e9, cafe\u0301") + "  - (a|b) c\n",
        2,
        "two or more different names",
    ),
}


@pytest.mark.parametrize("case", MORE_BAD_YAML)
def test_a_sentence_that_yaml_would_change_is_refused(case: str) -> None:
    text, line, message = MORE_BAD_YAML[case]
    with pytest.raises(UserError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"corpus.yaml:{line}: ")


def test_a_class_may_be_typed_in_another_normal_form() -> None:
    text = HEAD.replace("female", "caf\u00e9") + "  - text: a b\n    labels: {all: {cafe\u0301: {0: x}}}\n"
    assert forms(parse(text), "all", "caf\u00e9") == {0: "x"}


WORD = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=8)
SENTENCE = st.tuples(st.lists(WORD, min_size=1, max_size=4).filter(lambda words: "".join(words).strip()), WORD)


@settings(max_examples=200, deadline=None)
@given(st.lists(SENTENCE, min_size=1, max_size=4), st.permutations(CLASSES), st.sampled_from([".yaml", ".jsonl"]))
def test_whatever_a_labelling_holds_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[tuple[list[str], str]], classes: list[str], suffix: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    corpus = Labelling(
        tuple(classes),
        tuple(
            Sentence(number, tuple(words), {("all", classes[0]): {0: Label(form=form)}})
            for number, (words, form) in enumerate(sentences)
        ),
    )
    write_labelling(corpus, path)
    again = load_labelling(path)
    assert [(s.id, s.words, s.labels) for s in again.sentences] == [(s.id, s.words, s.labels) for s in corpus.sentences]
