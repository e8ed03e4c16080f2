"""The audit: small files with one defect each, and the released files against the published counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from geco_ray.errors import UserError
from geco_ray.geco.audit.audit import LOADER_POLICY, Audit, Split, audit, audit_tasks, find_defects, read_splits
from geco_ray.geco.data.sources import GECO_TASKS
from geco_ray.geco.rows import Row

# rows, sentences, words mean, sd, min, max, total, truth mean, min, max, share, rows and sentences without truth,
# vocabulary as it stands and in lower case
PUBLISHED = {
    ("binary_gender_all", "train"): "2576 1288 17.848 5.837 4 29 45976 3.105 0 10 0.1740 2 1 4417 4238",
    ("binary_gender_all", "test"): "644 322 18.385 5.413 5 29 11840 3.000 1 7 0.1632 0 0 1809 1753",
    ("binary_gender_subj", "train"): "2576 1288 17.848 5.837 4 29 45976 1.608 0 7 0.0901 22 11 4372 4206",
    ("binary_gender_subj", "test"): "644 322 18.385 5.413 5 29 11840 1.553 0 6 0.0845 2 1 1786 1734",
    ("non_binary_gender_all", "train"): "3864 1288 17.848 5.837 4 29 68964 4.200 0 14 0.2353 3 1 4608 4417",
    ("non_binary_gender_all", "test"): "966 322 18.385 5.413 5 29 17760 4.124 1 10 0.2243 0 0 1919 1859",
    ("non_binary_gender_subj", "train"): "3864 1288 17.847 5.837 4 29 68962 2.505 0 8 0.1403 33 11 4508 4339",
    ("non_binary_gender_subj", "test"): "966 322 18.383 5.411 5 29 17758 2.481 1 7 0.1350 0 0 1869 1817",
}

# length_mismatch, empty_truth, several_labels, duplicate_text, blank_word, padded_word, unchanged_truth; train, test
DEFECTS = {
    "binary_gender_all": ((0, 2, 1, 3, 2, 12, 0), (0, 0, 0, 0, 1, 3, 0)),
    "binary_gender_subj": ((0, 22, 11, 13, 2, 7, 0), (0, 2, 1, 1, 0, 1, 0)),
    "non_binary_gender_all": ((0, 3, 2, 6, 3, 89, 1), (0, 0, 0, 0, 1, 18, 1)),
    "non_binary_gender_subj": ((2, 33, 12, 26, 3, 42, 0), (2, 0, 1, 1, 0, 8, 0)),
}
KINDS = (
    "length_mismatch",
    "empty_truth",
    "several_labels",
    "duplicate_text",
    "blank_word",
    "padded_word",
    "unchanged_truth",
)
FORMATS = {
    "rows": "d",
    "source_sentences": "d",
    "words_mean": ".3f",
    "words_sd": ".3f",
    "words_min": "d",
    "words_max": "d",
    "words_total": "d",
    "truth_mean": ".3f",
    "truth_min": "d",
    "truth_max": "d",
    "truth_share": ".4f",
    "empty_truth_rows": "d",
    "empty_truth_sentences": "d",
    "vocabulary": "d",
    "vocabulary_lower": "d",
}


def row(text: str, truth: str, gender: str = "female", idx: int = 0, line: int = 1) -> Row:
    """``_`` stands for a blank inside a word."""
    words = tuple(word.replace("_", " ") for word in text.split(" "))
    marks = tuple(int(mark) for mark in truth)
    return Row(words, marks, gender, ("female", "male", "neutral").index(gender), idx, line)


def kinds(*rows: Row, train: set[tuple[str, ...]] | None = None) -> Counter[str]:
    return Counter(finding.defect for finding in find_defects(rows, train or set()))


@pytest.fixture(scope="module")
def released(data_dir: Path) -> Audit:
    return audit_tasks(data_dir=data_dir)


def summary_of(result: Audit) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(r["task"], r["split"], r["defect"]): r for r in result.summary.to_pylist()}


def test_a_clean_pair_has_no_defect() -> None:
    assert kinds(row("she runs", "10"), row("he runs", "10", "male", line=2)) == {}


@pytest.mark.parametrize(
    ("found", "rows"),
    [
        ({"length_mismatch": 1}, [row("she runs", "100")]),
        ({"empty_truth": 1}, [row("she runs", "00")]),
        ({"blank_word": 1}, [row("she  runs", "100")]),
        ({"blank_word": 1, "padded_word": 1}, [row("she _ runs", "100")]),
        ({"padded_word": 2}, [row("she_ _runs", "10")]),
        ({"duplicate_text": 1}, [row("she runs", "10"), row("she runs", "10", idx=1, line=2)]),
        (
            {"several_labels": 2, "duplicate_text": 1, "unchanged_truth": 1},
            [row("they run", "10"), row("they run", "10", "male", line=2)],
        ),
        ({"unmarked_change": 1}, [row("she runs far", "100"), row("he runs away", "100", "male", line=2)]),
        ({"mask_varies": 1}, [row("she runs", "10"), row("he runs", "11", "male", line=2)]),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_each_defect_is_found_alone(found: dict[str, int], rows: list[Row]) -> None:
    assert kinds(*rows) == found


def test_a_text_that_train_holds_is_found_in_test() -> None:
    test = row("she runs", "10", idx=5)
    assert kinds(test, row("he runs", "10", "male", 5, 2), train={test.words}) == {"seen_text": 1}


def test_variants_of_unequal_length_are_not_compared_word_by_word() -> None:
    found = kinds(row("she runs far", "100"), row("he runs", "100", "male", line=2))
    assert found == {"length_mismatch": 1}


def test_counts_of_a_small_file_by_hand() -> None:
    rows = (
        row("She runs far .", "1000"),
        row("He runs far .", "1000", "male", line=2),
        row("she _sees him", "101", idx=1, line=3),
        row("he sees her", "101", "male", idx=1, line=4),
    )
    counts = audit([Split("mine", "train", ("female", "male"), rows)]).counts.to_pylist()[0]
    assert counts["rows"] == 4
    assert counts["source_sentences"] == 2
    assert counts["rows_per_class"] == [2, 2]
    assert (counts["words_mean"], counts["words_sd"], counts["words_total"]) == (3.5, 0.5, 14)
    assert (counts["truth_mean"], counts["truth_min"], counts["truth_max"]) == (1.5, 1, 2)
    assert counts["truth_share"] == pytest.approx(6 / 14)
    assert counts["truth_share_mean"] == pytest.approx((1 / 4 + 2 / 3) / 2)
    assert counts["vocabulary"] == 11  # She runs far . He she _sees him he sees her
    assert counts["vocabulary_lower"] == 8


def test_every_kind_of_defect_has_its_row_policy_and_reason_even_when_absent() -> None:
    result = audit([Split("mine", "train", ("female",), (row("she runs", "10"),))])
    records = result.summary.to_pylist()
    assert [record["defect"] for record in records] == list(LOADER_POLICY)
    assert {record["policy"] for record in records} == {"reject", "count"}
    assert all(record["reason"] for record in records)


def test_the_released_files_have_the_published_counts(released: Audit) -> None:
    found = {
        (record["task"], record["split"]): " ".join(format(record[name], form) for name, form in FORMATS.items())
        for record in released.counts.to_pylist()
    }
    assert found == PUBLISHED


def test_uniform_attributions_are_expected_at_the_published_shares(released: Audit) -> None:
    found = {r["task"]: round(r["truth_share_mean"], 3) for r in released.counts.to_pylist() if r["split"] == "test"}
    assert list(found.values()) == [0.169, 0.090, 0.234, 0.145]


@pytest.mark.parametrize("task", GECO_TASKS)
def test_the_released_files_have_the_published_defects_and_no_other(released: Audit, task: str) -> None:
    summary = summary_of(released)
    for split, expected in zip(("train", "test"), DEFECTS[task], strict=True):
        counts = {key[2]: record["count"] for key, record in summary.items() if key[:2] == (task, split)}
        assert tuple(counts[kind] for kind in KINDS) == expected
        assert all(count == 0 for kind, count in counts.items() if kind not in KINDS)


def test_the_known_sentences_are_named_with_place_and_policy(released: Audit) -> None:
    defects = released.defects.to_pylist()

    def places(kind: str, task: str) -> set[tuple[int, int | None, str]]:
        return {
            (d["sentence_idx"], d["position"], d["policy"]) for d in defects if (d["defect"], d["task"]) == (kind, task)
        }

    assert places("length_mismatch", "non_binary_gender_subj") == {
        (1534, None, "repair: trim_mask at word 17"),
        (988, None, "repair: insert_blank at word 3"),
    }
    assert places("unchanged_truth", "non_binary_gender_all") == {(1534, 17, "count"), (988, 3, "count")}
    assert places("blank_word", "binary_gender_all") == {(538, 11, "count"), (1536, 7, "count")}
    empty = {d["sentence_idx"] for d in defects if d["defect"] == "empty_truth"}
    assert empty == {1467, 630, 715, 724, 779, 780, 781, 1060, 1097, 1213, 1421, 811}


def test_every_repair_of_the_loader_is_in_the_audit(data_dir: Path, released: Audit) -> None:
    from geco_ray.geco.data.dataset import load_task

    made = [
        (name, fix.split, fix.line, f"repair: {fix.kind} at word {fix.position}")
        for name in GECO_TASKS
        for fix in load_task(name, data_dir).repairs
    ]
    listed = [
        (d["task"], d["split"], d["line"], d["policy"])
        for d in released.defects.to_pylist()
        if d["policy"].startswith("repair")
    ]
    assert sorted(made) == sorted(listed)
    assert len(made) == 4


def test_a_file_that_the_loader_refuses_is_refused_with_its_line(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    good = '{"sentence": ["a"], "ground_truth": [1], "gender": "female", "target": 0, "sentence_idx": 0}\n'
    (folder / "train.jsonl").write_text(good + good.replace("[1]", "[1, 0]").replace('idx": 0', 'idx": 1'))
    (folder / "test.jsonl").write_text(good)
    with pytest.raises(UserError, match=r"train\.jsonl:2"):
        read_splits("mine", tmp_path)


def test_the_audit_needs_neither_torch_nor_scikit_learn(assert_imports_nothing: Callable[..., str]) -> None:
    modules = ("audit.audit", "audit.bias", "audit.correlations", "audit.tables", "data.sources", "corpus")
    code = "\n".join(f"import geco_ray.geco.{name}" for name in modules)
    assert_imports_nothing(code, ["torch", "ray", "transformers", "sklearn", "scipy", "matplotlib"])
