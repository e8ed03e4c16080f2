"""How two tasks relate: small pairs by hand, and the known exceptions of the release."""

from __future__ import annotations

from pathlib import Path

from geco_ray.geco.audit.audit import Split
from geco_ray.geco.relations import relate, relations_of_tasks
from geco_ray.geco.rows import Row


def row(text: str, truth: str, idx: int) -> Row:
    return Row(tuple(text.split()), tuple(map(int, truth)), "female", 0, idx, 1)


def test_words_and_truth_are_compared_row_by_row() -> None:
    subject = Split("s", "train", ("female",), (row("a b", "10", 0), row("a b", "10", 1), row("a b", "11", 2),
                                                row("a b", "100", 3), row("a b", "10", 4)))  # fmt: skip
    everyone = Split("a", "train", ("female",), (row("a b", "10", 0), row("a c", "11", 1), row("a b", "10", 2),
                                                 row("a b", "10", 3)))  # fmt: skip
    (found,) = relate([subject], [everyone]).to_pylist()
    assert (found["rows"], found["only_in_task"]) == (4, 1)
    assert (found["same_words"], found["other_words"]) == (3, [1])
    assert (found["same_truth"], found["truth_within"]) == (1, 2)
    assert (found["truth_outside"], found["not_comparable"]) == ([2], [3])


def test_the_release_has_the_known_relations(data_dir: Path) -> None:
    found = {(r["task"], r["other"], r["split"]): r for r in relations_of_tasks(data_dir).to_pylist()}
    outside = {(key[0], index) for key, r in found.items() for index in r["truth_outside"]}
    assert outside == {("binary_gender_subj", 621), ("non_binary_gender_subj", 514)}
    same = {key: (r["same_words"], r["same_truth"]) for key, r in found.items()}
    assert [same["binary_gender_subj", "binary_gender_all", split][0] for split in ("train", "test")] == [1370, 354]
    for kind, truths, words in (("all", (462, 90), (2576, 644)), ("subj", (582, 120), (2574, 642))):
        key = (f"binary_gender_{kind}", f"non_binary_gender_{kind}")
        assert [same[*key, split] for split in ("train", "test")] == list(zip(words, truths, strict=True))
    changed = {index for key, r in found.items() if key[1] == "non_binary_gender_subj" for index in r["other_words"]}
    assert changed == {1534, 988}
    assert all(r["only_in_task"] == 0 for r in found.values())
