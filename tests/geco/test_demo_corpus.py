"""The demo corpus is what it says: our own, unbiased by construction, and with two different versions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from geco_ray.errors import UserError
from geco_ray.geco.corpus.builder import build_all, truth_mask
from geco_ray.geco.corpus.demo import demo_labelling
from geco_ray.geco.data.dataset import DEMO_TASKS, load_task, task_fingerprint
from geco_ray.geco.rows import LABELS
from geco_ray.geco.task import Task

GENDERED = re.compile(
    r"she|he|her|his|hers|him|(her|him)self|m(rs|r|s|iss)\.?|(step|grand|great-grand)?(mother|father|son|daughter)"
    r"|sister|brother|wife|husband|girl(friend)?|boy(friend)?|\w*(man|woman|men|women)|lady|gentleman|queen|king",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def tasks() -> dict[str, Task]:
    return {name: load_task(name) for name in DEMO_TASKS}


def test_size_lengths_and_second_persons() -> None:
    sentences = demo_labelling().sentences
    assert len(sentences) == 150
    assert len({sentence.words for sentence in sentences}) == 150
    assert all(8 <= len(sentence.words) <= 25 for sentence in sentences)
    assert all(sentence.words[-1] == "." for sentence in sentences)
    second = [s for s in sentences if set(s.labels["all", "female"]) > set(s.labels["subj", "female"])]
    assert len(second) == 97


def test_the_four_tasks_have_the_shape_of_geco(tasks: dict[str, Task]) -> None:
    for name, task in tasks.items():
        classes = 3 if "non_binary" in name else 2
        assert task.labels == LABELS[:classes]
        assert (len(task.train), len(task.test)) == (120 * classes, 30 * classes)
        assert set(Counter(row.target for row in task.test).values()) == {30}
        assert not task.repairs
        for rows in (task.train, task.test):
            assert all(any(row.truth) for row in rows)
            assert len({row.words for row in rows}) == len(rows)
    tests = [{row.sentence_idx for row in task.test} for task in tasks.values()]
    assert tests[0] == tests[1] == tests[2] == tests[3]


def test_masks_are_nested_as_the_versions_are(tasks: dict[str, Task]) -> None:
    masks = {name: {row.sentence_idx: row.truth for row in (*t.train, *t.test)} for name, t in tasks.items()}
    for small, large in (
        ("demo_binary_subj", "demo_binary_all"),
        ("demo_binary_all", "demo_non_binary_all"),
        ("demo_binary_subj", "demo_non_binary_subj"),
    ):
        for number, mask in masks[small].items():
            assert all(a <= b for a, b in zip(mask, masks[large][number], strict=True))
    differ = sum(masks["demo_binary_subj"][n] != masks["demo_binary_all"][n] for n in range(150))
    assert differ == 97


def test_no_gendered_word_is_left_unmarked_when_all_are_turned(tasks: dict[str, Task]) -> None:
    for name in ("demo_binary_all", "demo_non_binary_all"):
        for row in (*tasks[name].train, *tasks[name].test):
            left = [w for w, t in zip(row.words, row.truth, strict=True) if not t and GENDERED.fullmatch(w)]
            assert not left, row


def test_the_neutral_form_has_no_gendered_word_and_no_verb_of_the_third_person(tasks: dict[str, Task]) -> None:
    for row in (*tasks["demo_non_binary_all"].train, *tasks["demo_non_binary_all"].test):
        if row.gender == "neutral":
            assert not [word for word in row.words if GENDERED.fullmatch(word)], row
            text = " ".join(row.words).lower()
            assert not re.search(r"\bthey (\w+ly |always )?(?!always)(is|was|has|does|\w+[^s]s)\b", text), row


def test_the_demo_is_built_by_the_common_code(tasks: dict[str, Task]) -> None:
    assert build_all(demo_labelling(), prefix="demo_") == tasks
    assert {name: task_fingerprint(name) for name in DEMO_TASKS} == {n: t.fingerprint for n, t in tasks.items()}
    assert len({task.fingerprint for task in tasks.values()}) == 4
    rows = [
        row
        for row in tasks["demo_non_binary_all"].test
        if row.sentence_idx == tasks["demo_binary_all"].test[0].sentence_idx
    ]
    assert {row.truth for row in rows} == {truth_mask([row.words for row in rows])}


def test_an_unknown_demo_task_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Did you mean 'demo_binary_all'"):
        load_task("demo_binary_al", tmp_path)


def test_the_demo_loads_without_torch_and_from_any_folder(
    tmp_path: Path, assert_imports_nothing: Callable[..., str]
) -> None:
    code = "from geco_ray.geco.data.dataset import load_task\nprint(len(load_task('demo_non_binary_subj').test))"
    heavy = ["torch", "ray", "transformers", "sklearn", "scipy"]
    assert assert_imports_nothing(code, heavy, cwd=tmp_path) == "90"


def test_turned_words_alone_tell_the_classes_apart(tasks: dict[str, Task]) -> None:
    """D_A is learnable: words that train has with one class only decide nearly all test rows."""
    for name, least in (("demo_binary_all", 0.95), ("demo_non_binary_all", 0.95)):
        task = tasks[name]
        seen: dict[str, set[int]] = {}
        for row in task.train:
            for word in row.words:
                seen.setdefault(word, set()).add(row.target)
        hits = 0
        for row in task.test:
            votes = Counter(target for word in row.words for target in seen.get(word, ()) if len(seen[word]) == 1)
            hits += bool(votes) and votes.most_common(1)[0][0] == row.target
        assert hits / len(task.test) >= least, name
