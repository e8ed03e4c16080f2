"""The loader refuses what is wrong by file and line, repairs what the release is known to get wrong, and no more."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geco_ray.errors import UserError
from geco_ray.geco.data import sources
from geco_ray.geco.data.dataset import (
    load_task,
    sample_sentences,
    task_fingerprint,
    task_names,
)
from geco_ray.geco.rows import LABELS, POLICY, parse_rows, read_rows

GOOD = {
    "sentence": ["She", "opens", "the", "door", "."],
    "ground_truth": [1, 0, 0, 0, 0],
    "gender": "female",
    "target": 0,
    "sentence_idx": 0,
}
MALE = {**GOOD, "sentence": ["He", "opens", "the", "door", "."], "gender": "male", "target": 1}


def line(**changes: object) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def write(path: Path, *lines: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def without(key: str) -> bytes:
    return json.dumps({k: v for k, v in GOOD.items() if k != key}).encode()


BAD_SECOND_LINES = {
    "crlf": (line(sentence_idx=1) + b"\r", "carriage return"),
    "blank": (b"", "the line is blank"),
    "spaces": (b"  \t", "the line is blank"),
    "json": (b'{"sentence": [', "invalid JSON at column"),
    "nested": (b"[" * 100_000, "invalid JSON"),
    "number": (b'{"target": ' + b"9" * 5000 + b"}", "too long a number"),
    "utf8": (b'{"sentence": ["\xff"]}', "not UTF-8"),
    "array": (b"[1, 2]", "not a JSON object"),
    "missing": (without("gender"), "the key 'gender' is missing"),
    "unknown": (line(sentence_idx=1, sentense=[]), "unknown key 'sentense'. Did you mean 'sentence'"),
    "repeated": (b'{"target": 0, "target": 1}', "the key 'target' is given twice"),
    "sentence_text": (line(sentence="She opens"), "must be a list of words"),
    "word_number": (line(sentence=["She", 3]), "word 1 of the sentence is not a string"),
    "surrogate": (line(sentence=["She", "\ud800"]), "word 1 of the sentence is not valid Unicode"),
    "no_words": (line(sentence=[], ground_truth=[]), "the sentence is empty"),
    "blank_words": (line(sentence=[" ", ""], ground_truth=[0, 1]), "the sentence is empty"),
    "long": (line(sentence=["a"] * 10_000, ground_truth=[0] * 10_000), "too long (found 10000"),
    "truth_text": (line(ground_truth="10000"), "must be a list of 0 and 1"),
    "truth_float": (line(ground_truth=[1.0, 0, 0, 0, 0]), "value 0 of ground_truth is not 0 or 1"),
    "truth_bool": (line(ground_truth=[0, True, 0, 0, 0]), "value 1 of ground_truth is not 0 or 1"),
    "truth_two": (line(ground_truth=[0, 0, 2, 0, 0]), "value 2 of ground_truth is not 0 or 1"),
    "mask_longer": (line(ground_truth=[1, 0, 0, 0, 0, 0]), "ground_truth is longer than the sentence (found 6"),
    "mask_shorter": (line(ground_truth=[1, 0]), "ground_truth is shorter than the sentence (found 2"),
    "gender_type": (line(sentence_idx=1, gender=None), "gender must be a name"),
    "gender_name": (line(sentence_idx=1, gender="femal"), "unknown class 'femal'. Did you mean 'female'"),
    "target_type": (line(sentence_idx=1, target=True), "target must be an integer"),
    "target_float": (line(sentence_idx=1, target=0.0), "target must be an integer"),
    "target_range": (line(sentence_idx=1, target=3), "not the id of a class (found 3"),
    "target_negative": (line(sentence_idx=1, target=-1), "not the id of a class (found -1"),
    "target_gender": (line(sentence_idx=1, target=1), "gender 'female' does not fit target 1"),
    "index_type": (line(sentence_idx="1"), "sentence_idx must be an integer"),
    "index_negative": (line(sentence_idx=-1), "must not be negative"),
    "duplicate": (line(), "stands on line 1 already"),
}


@pytest.mark.parametrize("case", BAD_SECOND_LINES)
def test_a_bad_line_is_refused_by_file_and_line(tmp_path: Path, case: str) -> None:
    bad, message = BAD_SECOND_LINES[case]
    path = write(tmp_path / "x.jsonl", line(), bad, line(sentence_idx=9))
    with pytest.raises(UserError) as caught:
        read_rows(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert len(str(caught.value)) < 600


def test_a_byte_order_mark_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", b"\xef\xbb\xbf" + line())
    with pytest.raises(UserError, match=r"x\.jsonl:1: .*byte order mark"):
        read_rows(path)


@pytest.mark.parametrize("content", [b"", b"\n"])
def test_a_file_without_rows_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"x\.jsonl"):
        read_rows(path)


def test_a_missing_file_and_a_folder_are_user_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(UserError, match="cannot read the file"):
            read_rows(path)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 200), st.integers(0, 200))
def test_any_damage_to_a_line_is_read_or_refused(junk: bytes, start: int, length: int) -> None:
    whole = json.dumps(GOOD).encode()
    damaged = whole[:start] + junk + whole[start + length :]
    try:
        rows = parse_rows(damaged + b"\n", "x.jsonl")
    except UserError as error:
        assert str(error).startswith("x.jsonl")  # noqa: PT017 (either outcome is right)
    else:
        assert all(len(row.words) == len(row.truth) and LABELS[row.target] == row.gender for row in rows)


def test_rows_keep_every_word_as_it_stands(tmp_path: Path) -> None:
    words = ["Mx. ", "parent's sibling", " ", "\u2028", "é", "."]
    path = write(tmp_path / "x.jsonl", line(sentence=words, ground_truth=[1, 1, 1, 0, 0, 0]))
    (row,) = read_rows(path)
    assert row.words == tuple(words)
    assert (row.truth, row.gender, row.target, row.sentence_idx, row.line) == ((1, 1, 1, 0, 0, 0), "female", 0, 0, 1)


def test_a_last_line_without_newline_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(line() + b"\n" + json.dumps(MALE).encode())
    assert [row.line for row in read_rows(path)] == [1, 2]


def test_an_audit_may_keep_rows_of_unequal_length(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", line(ground_truth=[1, 0]))
    (row,) = read_rows(path, keep_mismatched=True)
    assert len(row.words) == 5
    assert row.truth == (1, 0)


def test_the_policy_names_a_treatment_for_each_defect() -> None:
    assert {treatment for treatment, _ in POLICY.values()} == {"reject", "count"}
    assert POLICY["empty_truth"][0] == "count"
    assert POLICY["length_mismatch"][0] == "reject"


# ---- a folder of the user's own


def own_folder(root: Path, name: str = "mine") -> Path:
    other = [{**GOOD, "sentence_idx": 1}, {**MALE, "sentence_idx": 1}]
    write(root / name / "train.jsonl", *(json.dumps(row).encode() for row in (GOOD, MALE)))
    write(root / name / "test.jsonl", *(json.dumps(row).encode() for row in other))
    return root / name


def test_a_users_folder_loads_under_its_name(tmp_path: Path) -> None:
    own_folder(tmp_path)
    task = load_task("mine", tmp_path)
    assert (task.name, task.labels, len(task.train), len(task.test), task.repairs) == (
        "mine",
        ("female", "male"),
        2,
        2,
        (),
    )
    assert task.fingerprint == task_fingerprint("mine", tmp_path)
    assert "mine" in task_names(tmp_path)
    assert "mine" not in task_names()


def test_the_fingerprint_follows_the_bytes_of_both_files(tmp_path: Path) -> None:
    folder = own_folder(tmp_path)
    before = task_fingerprint("mine", tmp_path)
    (folder / "test.jsonl").write_bytes((folder / "test.jsonl").read_bytes().replace(b"door", b"gate"))
    middle = task_fingerprint("mine", tmp_path)
    train, test = folder / "train.jsonl", folder / "test.jsonl"
    first, second = train.read_bytes(), test.read_bytes()
    train.write_bytes(second)
    test.write_bytes(first)
    assert len({before, middle, task_fingerprint("mine", tmp_path)}) == 3


def test_classes_of_another_attribute_are_inferred(tmp_path: Path) -> None:
    folder = own_folder(tmp_path, "age")
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes().replace(b'"female"', b'"young"').replace(b'"male"', b'"old"'))
    assert load_task("age", tmp_path).labels == ("young", "old")


def test_swapped_female_and_male_ids_are_noticed(tmp_path: Path) -> None:
    folder = own_folder(tmp_path, "swapped")
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes().replace(b'"target": 0', b'"target": 2').replace(b": 1, ", b": 0, "))
    with pytest.raises(UserError, match=r"train\.jsonl:1"):
        load_task("swapped", tmp_path)


def test_a_source_sentence_in_both_splits_is_refused(tmp_path: Path) -> None:
    folder = own_folder(tmp_path)
    shutil.copy(folder / "train.jsonl", folder / "test.jsonl")
    with pytest.raises(UserError, match=r"test\.jsonl:1: source sentence 0 is in train as well \(line 1\)"):
        load_task("mine", tmp_path)


def test_an_unknown_dataset_is_answered_with_the_closest_names(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"Did you mean .*'binary_gender_all'"):
        load_task("binary_gendr_all", tmp_path)
    own_folder(tmp_path, "portuguese")
    with pytest.raises(UserError, match="Did you mean 'portuguese'"):
        load_task("portugese", tmp_path)
    with pytest.raises(UserError, match="cannot be the name"):
        load_task("../mine", tmp_path)


# ---- the release


def test_a_folder_without_geco_says_where_it_looked_and_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        load_task("binary_gender_all", tmp_path)
    text = str(caught.value)
    assert str(tmp_path / "geco" / "binary_gender_all") in text
    assert str(tmp_path / "binary_gender_all") in text
    assert "geco-ray data download" in text
    assert "--data-dir" in text


def test_a_folder_that_lacks_one_file_names_it(tmp_path: Path) -> None:
    write(tmp_path / "geco" / "binary_gender_all" / "train.jsonl", line())
    with pytest.raises(UserError) as caught:
        load_task("binary_gender_all", tmp_path)
    assert str(tmp_path / "geco" / "binary_gender_all" / "test.jsonl") in str(caught.value)
    assert "geco-ray data download" in str(caught.value)


def test_a_wrong_checksum_names_file_expected_found_and_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "with blank" / "geco" / "binary_gender_all"
    path = write(folder / "train.jsonl", line())
    write(folder / "test.jsonl", line())
    with pytest.raises(UserError) as caught:
        load_task("binary_gender_all", tmp_path / "with blank")
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert sources.SHA256["binary_gender_all", "train"] in text
    assert caught.value.found in text
    assert caught.value.found != caught.value.expected
    assert f"`rm '{path}'`" in text


def test_without_a_folder_the_environment_and_the_cache_are_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GECO_RAY_DATA", str(tmp_path / "named"))
    monkeypatch.setenv("GECO_RAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GECO_RAY_OFFLINE", "1")
    monkeypatch.setenv("GECO_RAY_OFFLINE", "1")
    own_folder(tmp_path / "cache")
    assert "mine" in task_names()
    assert load_task("mine").name == "mine"
    with pytest.raises(UserError, match="named"):
        load_task("binary_gender_all")


@pytest.mark.parametrize(
    ("name", "train", "test", "repairs"),
    [
        ("binary_gender_all", 2576, 644, 0),
        ("binary_gender_subj", 2576, 644, 0),
        ("non_binary_gender_all", 3864, 966, 0),
        ("non_binary_gender_subj", 3864, 966, 4),
    ],
)
def test_the_release_loads_with_its_counts(name: str, train: int, test: int, repairs: int, data_dir: Path) -> None:
    task = load_task(name, data_dir)
    assert (len(task.train), len(task.test), len(task.repairs)) == (train, test, repairs)
    assert task.labels == LABELS[: 3 if "non" in name else 2]
    for rows, size in ((task.train, 1288), (task.test, 322)):
        assert len({row.sentence_idx for row in rows}) == size
        assert all(len(row.words) == len(row.truth) for row in rows)
        per_class = [sum(row.target == label for row in rows) for label in range(len(task.labels))]
        assert per_class == [size] * len(task.labels)
    assert task.fingerprint == task_fingerprint(name)


def test_the_two_known_defects_are_repaired_as_described(data_dir: Path) -> None:
    task = load_task("non_binary_gender_subj", data_dir)
    trimmed = [row for row in task.train if row.sentence_idx == 1534]
    assert [len(row.truth) for row in trimmed] == [17, 17, 18]
    inserted = [row for row in task.test if row.sentence_idx == 988]
    assert [row.words[3] for row in inserted] == ["", "", "Abbé"]
    assert [row.words[5] for row in inserted] == ["he", "she", "they"]
    assert {row.truth for row in inserted} == {inserted[2].truth}
    assert [(r.split, r.sentence_idx, r.gender, r.kind, r.position) for r in task.repairs] == [
        ("train", 1534, "male", "trim_mask", 17),
        ("train", 1534, "female", "trim_mask", 17),
        ("test", 988, "male", "insert_blank", 3),
        ("test", 988, "female", "insert_blank", 3),
    ]
    path = data_dir / "geco" / "non_binary_gender_subj" / "test.jsonl"
    with pytest.raises(UserError, match=r"test\.jsonl:562: ground_truth is longer"):
        read_rows(path)
    assert len(read_rows(path, keep_mismatched=True)) == 966


# ---- sampling, cheapness


def test_a_sample_is_seeded_nested_and_leaves_the_global_generators_alone(tmp_path: Path) -> None:
    import random

    import numpy as np

    before = random.getstate(), np.random.get_state()[1].tolist()
    task = load_task("demo_binary_all")
    ids = {row.sentence_idx for row in task.test}
    small, large = sample_sentences(task, 3, 0), sample_sentences(task, 7, 0)
    assert len(small) == 3
    assert len(large) == 7
    assert small < large <= ids
    assert small == sample_sentences(load_task("demo_binary_subj"), 3, 0)
    assert any(sample_sentences(task, 3, seed) != small for seed in range(1, 4))
    assert sample_sentences(task, len(ids), 5) == ids
    assert before == (random.getstate(), np.random.get_state()[1].tolist())
    for n in (0, -1, len(ids) + 1):
        with pytest.raises(UserError, match="cannot sample"):
            sample_sentences(task, n, 0)


def test_metadata_needs_no_torch_and_no_file(tmp_path: Path, assert_imports_nothing: Callable[..., str]) -> None:
    code = (
        "from geco_ray.geco.data.dataset import task_fingerprint, task_names\n"
        "assert all(len(task_fingerprint(name)) == 64 for name in task_names()), task_names()\n"
    )
    nowhere = {"GECO_RAY_DATA": str(tmp_path), "GECO_RAY_CACHE": str(tmp_path)}
    assert_imports_nothing(code, ["torch", "ray", "transformers", "sklearn", "scipy", "pandas"], env=nowhere)


def test_a_class_in_another_normal_form_is_the_same_class(tmp_path: Path) -> None:
    folder = own_folder(tmp_path, "age")
    for path, spelling in zip(sorted(folder.iterdir()), ("m\u00e4d", "ma\u0308d"), strict=True):
        text = path.read_text(encoding="utf-8").replace('"female"', f'"{spelling}"').replace('"male"', '"old"')
        path.write_text(text, encoding="utf-8")
    task = load_task("age", tmp_path)
    assert {row.gender for row in (*task.train, *task.test)} == set(task.labels)
