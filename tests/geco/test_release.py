"""The builder and the neutral rules against the released files: masks, variants, bytes, order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from geco_ray.errors import UserError
from geco_ray.geco.corpus.builder import build_task, build_variants, dump_rows, truth_mask
from geco_ray.geco.corpus.convert import convert_geco
from geco_ray.geco.corpus.labelling import Labelling, dump_labelling, parse_labelling
from geco_ray.geco.corpus.neutral import NeutralRules
from geco_ray.geco.data.dataset import load_task
from geco_ray.geco.rows import LABELS, Row, parse_rows, read_bytes
from geco_ray.geco.task import Task

BINARY = LABELS[:2]
PAPER = NeutralRules(style="paper", unknown="keep")


class Agreement(NamedTuple):
    """Source sentences compared, identical, and faithful (male and female as released); gendered words, equal ones."""

    sentences: int
    identical: int
    faithful: int
    gendered: int
    equal_gendered: int


def compare(labelling: Labelling, task: Task, version: str, name: str, rules: NeutralRules | None = None) -> Agreement:
    """The built variants of class ``name`` beside the rows of a released task.

    Gendered words are those at positions where the released rows differ among themselves or from the built word.
    """
    released: dict[int, dict[str, tuple[str, ...]]] = {}
    for row in (*task.train, *task.test):
        released.setdefault(row.sentence_idx, {})[row.gender] = row.words
    classes = LABELS if name == "neutral" else BINARY
    counts = [0] * 5
    for sentence in labelling.sentences:
        if sentence.id not in released:
            continue
        rows = released[sentence.id]
        variants = dict(zip(classes, build_variants(sentence, version, classes, rules=rules), strict=True))
        pairs = list(zip(rows[name], variants[name], strict=False))
        gendered = [pair for pair, *forms in zip(pairs, *rows.values(), strict=False) if len({*forms, pair[1]}) > 1]
        faithful = all(variants[label] == rows[label] for label in BINARY)
        equal = sum(a == b for a, b in gendered)
        found = (1, rows[name] == variants[name], faithful, len(gendered), equal)
        counts = [total + more for total, more in zip(counts, found, strict=True)]
    return Agreement(*counts)


def equal_masks(labelling: Labelling, task: Task, version: str) -> int:
    """The number of source sentences whose binary truth mask is that of the released task."""
    truth = {row.sentence_idx: row.truth for row in (*task.train, *task.test)}
    return sum(
        truth_mask(build_variants(sentence, version, BINARY)) == truth.get(sentence.id)
        for sentence in labelling.sentences
    )


def mask_mismatches(rows: Iterable[Row]) -> set[int]:
    """Source sentences whose mask is not what the mask rule gives for their own variants."""
    groups: dict[int, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.sentence_idx, []).append(row)

    def follows(group: Sequence[Row]) -> bool:
        words = [row.words for row in group]
        return len({len(text) for text in words}) == 1 and {row.truth for row in group} == {truth_mask(words)}

    return {number for number, group in groups.items() if not follows(group)}


@pytest.fixture(scope="module")
def geco(data_dir: Path) -> Labelling:
    return convert_geco(data_dir / "geco" / "labelling.json")


@pytest.fixture(scope="module")
def released(data_dir: Path) -> dict[str, Task]:
    names = [f"{kind}_gender_{version}" for kind in ("binary", "non_binary") for version in ("all", "subj")]
    return {name: load_task(name, data_dir) for name in names}


def test_the_mask_rule_gives_every_released_mask_but_two(released: dict[str, Task], data_dir: Path) -> None:
    wrong = {name: mask_mismatches((*task.train, *task.test)) for name, task in released.items()}
    assert wrong == {
        "binary_gender_all": set(),
        "binary_gender_subj": set(),
        "non_binary_gender_all": {988, 1534},
        "non_binary_gender_subj": {1534},  # 988 is right once the blank word is inserted
    }
    folder = data_dir / "geco" / "non_binary_gender_subj"
    raw = [
        row
        for split in ("train", "test")
        for row in parse_rows(read_bytes(folder / f"{split}.jsonl"), split, keep_mismatched=True)
    ]
    assert mask_mismatches(raw) == {988, 1534}


def test_the_legacy_labelling_reaches_the_published_counts(geco: Labelling, released: dict[str, Task]) -> None:
    assert len(geco.sentences) == 1610
    counts = {
        (version, name): compare(geco, released[f"binary_gender_{version}"], version, name).identical
        for version in ("all", "subj")
        for name in BINARY
    }
    assert counts == {
        ("all", "male"): 1504,
        ("all", "female"): 1504,
        ("subj", "female"): 1505,
        ("subj", "male"): 1504,
    }
    masks = [equal_masks(geco, released[f"binary_gender_{version}"], version) for version in ("all", "subj")]
    assert masks == [1573, 1573]


def test_how_far_the_neutral_rules_reach_the_released_neutral_rows(geco: Labelling, released: dict[str, Task]) -> None:
    found = {
        version: compare(geco, released[f"non_binary_gender_{version}"], version, "neutral", PAPER)
        for version in ("all", "subj")
    }
    measured = {v: (a.sentences, a.identical, a.faithful, a.gendered, a.equal_gendered) for v, a in found.items()}
    assert measured == {"all": (1610, 1283, 1504, 7270, 6505), "subj": (1610, 1311, 1505, 4682, 3953)}


def test_released_rows_are_written_back_byte_for_byte(released: dict[str, Task], data_dir: Path) -> None:
    for name in ("binary_gender_all", "non_binary_gender_all"):
        task = released[name]
        for split, rows in (("train", task.train), ("test", task.test)):
            written = dump_rows(rows).encode()
            assert written.rstrip() == (data_dir / "geco" / name / f"{split}.jsonl").read_bytes().rstrip()


def test_built_rows_stand_in_the_order_of_the_release(geco: Labelling, released: dict[str, Task]) -> None:
    built = build_task(geco, "non_binary", "all", rules=PAPER)
    for split in ("train", "test"):
        keys = [
            [(row.sentence_idx, row.target, row.gender) for row in getattr(task, split)]
            for task in (built, released["non_binary_gender_all"])
        ]
        assert keys[0] == keys[1]


def test_the_converted_labelling_survives_its_own_file(geco: Labelling, tmp_path: Path) -> None:
    again = parse_labelling(dump_labelling(geco).encode(), "geco.jsonl")
    assert dump_labelling(again) == dump_labelling(geco)
    assert build_task(again, "binary", "subj").fingerprint == build_task(geco, "binary", "subj").fingerprint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "invalid JSON"),
        ("[]", "not a GECO labelling"),
        ('{"tags": {}, "sentences": {"5": {"idx": 5}}}', "sentence 5: the record is not as expected"),
    ],
)
def test_a_file_that_is_no_geco_labelling_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "labelling.json"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        convert_geco(path)
