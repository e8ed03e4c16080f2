"""Variants, masks, neutral forms and the split, by hand-made examples."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from geco_ray.errors import UserError
from geco_ray.geco.corpus.builder import (
    build_all,
    build_task,
    build_variants,
    split_ids,
    truth_mask,
    write_task,
)
from geco_ray.geco.corpus.labelling import FORMAT, Labelling, Sentence, parse_labelling
from geco_ray.geco.corpus.neutral import NeutralRules
from geco_ray.geco.data.dataset import load_task
from geco_ray.geco.rows import LABELS

BINARY = LABELS[:2]
ENGLISH, PAPER = NeutralRules(), NeutralRules(style="paper", unknown="keep")


def corpus(*entries: str, classes: str = "[female, male, neutral]") -> Labelling:
    lines = "\n".join(f"  - {entry}" for entry in entries)
    return parse_labelling(f"format: {FORMAT}\nclasses: {classes}\nsentences:\n{lines}\n".encode(), "c.yaml")


def one(entry: str) -> Sentence:
    return corpus(entry).sentences[0]


def texts(sentence: Sentence, version: str, rules: NeutralRules | None = None) -> list[str]:
    return [" ".join(words) for words in build_variants(sentence, version, LABELS, rules=rules)]


SEES = "(She|He|They) (sees||see) (her|his|their) (mother|father*|parent) ."


def test_six_variants_and_four_masks_of_one_sentence() -> None:
    sentence = one(SEES)
    assert texts(sentence, "all") == ["She sees her mother .", "He sees his father .", "They see their parent ."]
    assert texts(sentence, "subj") == ["She sees her father .", "He sees his father .", "They see their father ."]
    masks = {
        (version, len(classes)): truth_mask(build_variants(sentence, version, classes))
        for version in ("all", "subj")
        for classes in (BINARY, LABELS)
    }
    assert masks == {
        ("all", 2): (1, 0, 1, 1, 0),
        ("all", 3): (1, 1, 1, 1, 0),
        ("subj", 2): (1, 0, 1, 0, 0),
        ("subj", 3): (1, 1, 1, 0, 0),
    }


def test_a_word_that_never_changes_is_not_truth_even_if_labelled() -> None:
    sentence = one("(She|He|They) (walks|walks|walks) home")
    assert truth_mask(build_variants(sentence, "all", LABELS)) == (1, 0, 0)


def test_variants_of_different_lengths_have_no_mask() -> None:
    with pytest.raises(ValueError, match="zip"):
        truth_mask([("a", "b"), ("a",)])


def test_an_unknown_version_or_kind_is_named() -> None:
    with pytest.raises(UserError, match="Did you mean 'subj'"):
        build_variants(one(SEES), "subject", LABELS)
    with pytest.raises(UserError, match="Did you mean 'non_binary'"):
        build_task(corpus(SEES, SEES), "nonbinary", "all")  # type: ignore[arg-type]


def test_tags_keep_the_source_word_unless_names_are_given() -> None:
    labels = "{female: {0: {tag: surname}, 2: {tag: surname_pl}}, male: {0: {tag: surname}, 2: {tag: surname_pl}}}"
    sentence = one("{id: 3, text: Bennet meets Bingleys, labels: {all: " + labels + "}}")
    assert texts(sentence, "all") == ["Bennet meets Bingleys"] * 3
    filled = build_variants(sentence, "all", BINARY, fill={"surname": ["Ash", "Elm", "Oak"]})
    assert filled[0] == filled[1]
    name = filled[0][0]
    assert filled[0] == (name, "meets", f"{name}s")
    seeds = {build_variants(sentence, "all", BINARY, fill={"surname": ["Ash", "Elm", "Oak"]}, seed=s) for s in range(9)}
    assert len(seeds) == 3


# ---- the split


def test_the_split_is_the_released_one_and_spares_the_global_generator() -> None:
    random.seed(5)
    before = random.getstate()
    train, test = split_ids(range(1610))
    assert random.getstate() == before
    assert (len(train), len(test)) == (1288, 322)
    assert train[:6] == [1593, 902, 239, 15, 185, 1192]
    assert test == sorted(test)
    assert {*train, *test} == set(range(1610))


def test_the_split_follows_the_ids_whatever_their_order_and_gaps() -> None:
    ids = [10 * i for i in range(1610)]
    train, _ = split_ids(list(reversed(ids)))
    assert train[:3] == [15930, 9020, 2390]
    with pytest.raises(UserError, match="cannot be split"):
        split_ids([4])


def test_the_variants_of_a_sentence_share_a_split_and_follow_the_order_of_the_release() -> None:
    task = build_task(corpus(*[SEES.replace("sees", f"sees{i}") for i in range(10)]), "non_binary", "all")
    assert [row.gender for row in task.train[:3]] == ["male", "female", "neutral"]
    assert [row.target for row in task.train[:3]] == [1, 0, 2]
    assert (len(task.train), len(task.test)) == (24, 6)
    assert not {row.sentence_idx for row in task.train} & {row.sentence_idx for row in task.test}
    assert [row.line for row in task.test] == [1, 2, 3, 4, 5, 6]


# ---- files


def test_a_written_task_loads_as_it_was_built(tmp_path: Path) -> None:
    built = build_task(corpus(*[SEES.replace(".", f"{i} .") for i in range(5)]), "non_binary", "subj", name="mine")
    write_task(built, tmp_path / "mine")
    loaded = load_task("mine", tmp_path)
    assert loaded == built
    write_task(built, tmp_path / "mine")
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == ["test.jsonl", "train.jsonl"]


def test_another_attribute_with_two_classes(tmp_path: Path) -> None:
    age = corpus(*["The (young|old) cook sings (her|his) song"] * 5, classes="[young, old]")
    tasks = build_all(age, prefix="age_")
    assert list(tasks) == ["age_binary_all", "age_binary_subj"]
    assert tasks["age_binary_all"].labels == ("young", "old")
    assert tasks["age_binary_all"].train[0].gender == "young"
    with pytest.raises(UserError, match="needs three classes"):
        build_task(age, "non_binary", "all")


# ---- the neutral form


def test_a_missing_neutral_form_is_named_with_its_place() -> None:
    with pytest.raises(UserError, match=r"c\.yaml:4: sentence 0 has no neutral form of word 0 \('She'\)"):
        texts(one("(She|He) opens the door ."), "all")


@pytest.mark.parametrize(
    ("marked", "neutral"),
    [
        ("(She|He) opens the door .", "They open the door ."),
        ("(She|He) quickly opens the door .", "They quickly open the door ."),
        ("(She|He) never was happy .", "They never were happy ."),
        ("(She|He) tries it .", "They try it ."),
        ("(She|He) watches (him|her) .", "They watch them ."),
        ("(She|He) goes with (her|his) (aunt|uncle) .", "They go with their parent's sibling ."),
        ("(Mrs.|Mr.) Bell praises (herself|himself) .", "Mx. Bell praises themself ."),
        ("(She|He) always paints houses .", "They always paint houses ."),
        ("They see (him|her) goes .", "They see them goes ."),
        ("(She|He) left .", "They left ."),
    ],
)
def test_english_rules(marked: str, neutral: str) -> None:
    assert texts(one(marked), "all", ENGLISH)[2] == neutral


def labelled(
    text: str, male: dict[int, str], female: dict[int, str], neutral: dict[int, str] | None = None
) -> Sentence:
    labels = {"male": male, "female": female, **({"neutral": neutral} if neutral else {})}
    return one(json.dumps({"id": 0, "text": text, "labels": {"all": labels}}))


def test_rules_by_which_words_are_labelled() -> None:
    both_equal = labelled("a b", {0: "x"}, {0: "x"})
    assert texts(both_equal, "all", PAPER) == ["x b"] * 3
    male_wins = labelled("a b", {0: "monk"}, {0: "nun"})
    assert texts(male_wins, "all", PAPER)[2] == "monastic b"
    only_female = labelled("he tries", {}, {0: "she"})
    assert texts(only_female, "all", PAPER) == ["she tries", "he tries", "they trie"]
    assert texts(only_female, "all", ENGLISH)[2] == "they try"
    unknown = labelled("a b", {0: "zork"}, {0: "zorkess"})
    assert texts(unknown, "all", PAPER)[2] == "a b"
    with pytest.raises(UserError, match="no rule gives the neutral form of 'zork'"):
        texts(unknown, "all", ENGLISH)


def test_possessive_her_is_them_in_the_paper_and_their_in_english() -> None:
    sentence = labelled("he harms his pride", {}, {0: "she", 2: "her"})
    assert texts(sentence, "all", PAPER)[2] == "they harm them pride"
    assert texts(sentence, "all", ENGLISH)[2] == "they harm their pride"


def test_a_given_neutral_form_wins_over_the_rules() -> None:
    sentence = labelled("he tries hard", {}, {0: "she"}, {0: "they", 1: "attempt"})
    assert texts(sentence, "all", PAPER)[2] == "they attempt hard"
    assert texts(sentence, "all", None)[2] == "they attempt hard"


# ---- the page on corpora of one's own


def test_the_examples_of_the_docs_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "own_corpus.md").read_text(encoding="utf-8")
    yaml, python = (re.findall(rf"^```{kind}\n(.*?)^```", page, re.M | re.S) for kind in ("yaml", "python"))
    assert (len(yaml), len(python)) == (3, 1)
    monkeypatch.chdir(tmp_path)
    Path("kitchen.yaml").write_text(yaml[0], encoding="utf-8")
    exec(python[0], {})
    assert sorted(path.name for path in Path("data").iterdir()) == [
        f"kitchen_{kind}_{version}" for kind in ("binary", "non_binary") for version in ("all", "subj")
    ]
    assert load_task("kitchen_non_binary_subj", Path("data")).labels == LABELS
    spelled, german = (parse_labelling(text.encode(), "docs.yaml") for text in yaml[1:])
    assert texts(spelled.sentences[0], "all")[1] == "The clerk thanks Lord Norton ."
    assert texts(spelled.sentences[1], "subj") == ["The either|or puzzles her ."] * 3
    assert build_all(german)["binary_subj"].labels == ("young", "old")
