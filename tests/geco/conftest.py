"""Fixtures shared by the tests of the GECO side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from geco_ray.geco.paradigms.base import PARADIGMS
from geco_ray.geco.protocol import PROTOCOLS, resolve_protocol
from geco_ray.geco.rows import Row
from geco_ray.geco.task import Task

if TYPE_CHECKING:
    from geco_ray.geco.encoders import EncoderSource
    from geco_ray.geco.tokens import TaskTokens
    from geco_ray.geco.trained import TrainedClassifier


TINY_PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "he",
    "she",
    "they",
    "his",
    "her",
    "him",
    "the",
    "a",
    "and",
    "dog",
    "cat",
    "house",
    "sees",
    "likes",
    "finds",
    "old",
    "big",
    "red",
    "run",
    "##ning",
    "##s",
    "##ly",
    "in",
    "on",
    ".",
    ",",
    "sis",
    "##ter",
    "bro",
    "##ther",
    "mona",
    "##rch",
    "parent",
    "'",
    "s",
    "sibling",
]


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random BERT of two layers and its heads.

    Its tokenizer file pads and cuts to 16, as packaged ones do to 128.
    """
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from transformers import BertConfig, BertForPreTraining, BertModel

    folder = tmp_path_factory.mktemp("tiny_bert")
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(TINY_PIECES)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(TINY_PIECES[:5])
    tokenizer.enable_padding(length=16)
    tokenizer.enable_truncation(16)
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]"}
    named = {"tokenizer_class": "BertTokenizer", "unk_token": "[UNK]", **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    config = BertConfig(
        vocab_size=len(TINY_PIECES),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        initializer_range=0.3,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        encoder = BertModel(config)
        whole = BertForPreTraining(config)
        whole.bert = encoder
        whole.tie_weights()
        whole.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_source(tiny_folder: Path) -> EncoderSource:
    """The encoder of :func:`tiny_folder`."""
    from geco_ray.geco.encoders import resolve_encoder

    return resolve_encoder(str(tiny_folder))


@pytest.fixture(scope="session")
def tiny_task() -> Task:
    """Three classes, told apart by the first word; sentences of several lengths with blank and multi-piece words."""
    subjects = (("She", "sister"), ("He", "brother"), ("They", "parent's sibling"))
    nouns, verbs, ends = ("dog", "cat", "house"), ("sees", "likes", "finds"), ("running", "", "old red", "big")
    rows = []
    for index in range(24):
        noun, verb, end = nouns[index % 3], verbs[index // 3 % 3], ends[index % 4]
        for target, (subject, person) in enumerate(subjects):
            words = [subject, verb, "the", *["old"] * (index % 5), noun, "and", "the", person, end, "."]
            truth = [int(word in (subject, person)) for word in words]
            gender = ("female", "male", "neutral")[target]
            rows.append(Row(tuple(words), tuple(truth), gender, target, index, len(rows) + 1))
    return Task("tiny", ("female", "male", "neutral"), tuple(rows[:54]), tuple(rows[54:]), "0" * 64)


@pytest.fixture(scope="session")
def tiny_tokens(tiny_task: Task, tiny_source: EncoderSource) -> TaskTokens:
    """The tokens of :func:`tiny_task`."""
    from geco_ray.geco.encoders import load_tokenizer
    from geco_ray.geco.tokens import tokenize_task

    return tokenize_task(tiny_task, load_tokenizer(tiny_source))


PARADIGM_OPTIONS: dict[str, dict[str, object]] = {
    "bert_c": {"epochs": 6, "batch_size": 16},
    "bert_ce": {"epochs": 2, "batch_size": 16},
    "bert_cef": {"epochs": 2, "batch_size": 16},
    "bert_cefaf": {"epochs": 2, "batch_size": 16, "learning_rate": 1e-3},
    "bert_zs": {"label_words": {"female": "she", "male": "he", "neutral": "they"}},
    "bert_zs_label_embedding": {},
    "ola_cea": {"epochs": 6, "batch_size": 16},
}


@pytest.fixture(scope="session")
def paradigm_options() -> dict[str, dict[str, object]]:
    """What makes the training of each paradigm a matter of seconds."""
    return PARADIGM_OPTIONS


@pytest.fixture(scope="session")
def trained(tiny_tokens: TaskTokens, tiny_source: EncoderSource) -> dict[tuple[str, str], TrainedClassifier]:
    """One classifier per paradigm and protocol, of the tiny task."""
    import torch

    from geco_ray.geco.paradigms.base import TrainingSetup

    result = {}
    for protocol in PROTOCOLS:
        setup = TrainingSetup(tiny_tokens, tiny_source, resolve_protocol(protocol), torch.device("cpu"))
        for entry in PARADIGMS.entries():
            options = entry.parse_options(PARADIGM_OPTIONS.get(entry.name))
            (result[entry.name, protocol],) = entry.target().train(setup, options, [0])
    return result


@pytest.fixture(params=PARADIGMS.names())
def paradigm(request: pytest.FixtureRequest) -> str:
    """Each paradigm in turn."""
    return str(request.param)


@pytest.fixture(params=list(PROTOCOLS))
def protocol(request: pytest.FixtureRequest) -> str:
    """Each protocol in turn."""
    return str(request.param)
