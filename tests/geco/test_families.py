"""Every encoder family against the library's own models, on tiny random configurations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from geco_ray.errors import UserError
from geco_ray.geco.backbones.base import BACKBONES
from geco_ray.geco.classifiers import OlaClassifier
from geco_ray.geco.encoders import encoder_positions, load_tokenizer, resolve_encoder
from geco_ray.geco.model_parts import parts_of
from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
from geco_ray.geco.paradigms.bert import BertParadigm
from geco_ray.geco.pretrained.classifier import EncoderClassifier
from geco_ray.geco.pretrained.loading import load_backbone, load_masked_lm
from geco_ray.geco.protocol import PROTOCOLS, resolve_protocol
from geco_ray.geco.task import Task
from geco_ray.geco.tokens import TaskTokens, pad_rows, tokenize_task
from geco_ray.geco.training import GENERAL_SEED, load_trained
from tests.geco.families import FAMILIES, build_family

CPU = torch.device("cpu")
EMBEDDINGS = {
    "bert": ("embeddings.",),
    "roberta": ("embeddings.",),
    "distilbert": ("embeddings.",),
    "electra": ("embeddings.",),
    "albert": ("embeddings.",),
    "xlnet": ("word_embedding.",),
    "gpt2": ("wte.", "wpe."),
}
"""How the library's names of the embeddings' parameters begin, below the encoder."""
POOLED = {"bert", "albert"}
HEADS: dict[str, dict[str, str]] = {
    "bert": {"classifier": ""},
    "roberta": {"classifier.dense": "dense", "classifier.out_proj": "out_proj"},
    "distilbert": {"pre_classifier": "dense", "classifier": "out_proj"},
    "electra": {"classifier.dense": "dense", "classifier.out_proj": "out_proj"},
    "albert": {"classifier": ""},
    "xlnet": {"sequence_summary.summary": "dense", "logits_proj": "out_proj"},
    "gpt2": {"score": ""},
}
"""The library's layers outside the encoder, and ours."""
SPECIAL = dict.fromkeys(HEADS, (1, 1)) | {"xlnet": (0, 2), "gpt2": (0, 1)}
"""How many special tokens stand before and after a sentence."""
LONGEST = dict.fromkeys(HEADS, 512) | {"xlnet": None, "gpt2": 128}
BERT_PARADIGMS = [entry.name for entry in PARADIGMS.entries() if issubclass(entry.target, BertParadigm)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One tiny encoder of each registered family."""
    root = tmp_path_factory.mktemp("families")
    return {name: build_family(name, root / name) for name in BACKBONES.names()}


@pytest.fixture(params=BACKBONES.names())
def family(request: pytest.FixtureRequest) -> str:
    """Each family in turn."""
    return str(request.param)


def _tokens(folder: Path, task: Task) -> TaskTokens:
    return tokenize_task(task, load_tokenizer(resolve_encoder(str(folder))))


def _padded(tokens: TaskTokens) -> tuple[torch.Tensor, torch.Tensor]:
    ids, mask = pad_rows(tokens.test, tokens.tokenizer.pad_id)
    return torch.from_numpy(ids), torch.from_numpy(mask)


def _classifier(folder: Path, **options: Any) -> EncoderClassifier:
    return EncoderClassifier(load_backbone(resolve_encoder(str(folder))), 3, seed=GENERAL_SEED, **options)


def test_every_family_is_in_the_tables() -> None:
    for table in (FAMILIES, EMBEDDINGS, HEADS, SPECIAL, LONGEST):
        assert sorted(table) == BACKBONES.names()


def test_the_sentence_stands_between_the_familys_special_tokens(
    folders: dict[str, Path], family: str, tiny_task: Task
) -> None:
    tokens = _tokens(folders[family], tiny_task)
    before, after = SPECIAL[family]
    for row, words in zip(tokens.test, tiny_task.test, strict=True):
        inner = row.words[before : len(row) - after]
        assert (row.words == -1).sum() == before + after
        assert sorted(set(inner.tolist())) == [i for i, word in enumerate(words.words) if word.strip()]
    assert encoder_positions(resolve_encoder(str(folders[family]))) == LONGEST[family]


@pytest.mark.parametrize("padded", [False, True])
def test_logits_are_those_of_the_librarys_sequence_classifier(
    folders: dict[str, Path], family: str, tiny_task: Task, padded: bool
) -> None:
    """XLNet pads on the left there; GPT-2 finds the last token by its id, which is the padding's, so it gets none."""
    from transformers import AutoModelForSequenceClassification

    tokens, model = _tokens(folders[family], tiny_task), _classifier(folders[family])
    whole = AutoModelForSequenceClassification.from_pretrained(str(folders[family]), num_labels=3).eval()
    whole.base_model.load_state_dict(model.encoder.state_dict())
    for theirs, ours in HEADS[family].items():
        whole.get_submodule(theirs).load_state_dict(model.head.get_submodule(ours).state_dict())
    ids, mask = _padded(tokens)
    together = model(ids, mask)
    for row, keep, logits in zip(ids, mask, together, strict=True):
        found = logits if padded else model(row[keep][None])[0]
        alone = {"input_ids": row[keep][None], "attention_mask": keep[keep].long()[None]}
        if family == "xlnet":
            types = torch.zeros_like(alone["input_ids"])
            types[:, -1] = 2
            alone = {name: torch.nn.functional.pad(value, (3, 0)) for name, value in alone.items()}
            alone["token_type_ids"] = torch.nn.functional.pad(types, (3, 0), value=3)
        if family == "gpt2":
            alone = {"inputs_embeds": whole.base_model.wte(alone["input_ids"])}
        assert torch.allclose(whole(**alone).logits[0], found, atol=1e-4)


@pytest.mark.parametrize("baseline", [False, True])
def test_by_embeddings_equals_by_ids_also_with_padding_inside_the_sentence(
    folders: dict[str, Path], family: str, tiny_task: Task, baseline: bool
) -> None:
    tokens, model = _tokens(folders[family], tiny_task), _classifier(folders[family])
    for row in tokens.test[:6]:
        ids = torch.from_numpy(row.ids)[None]
        if baseline:
            ids = torch.where(torch.from_numpy(row.words)[None] < 0, ids, tokens.tokenizer.pad_id)
        vectors = model.encoder.get_input_embeddings()(ids)  # type: ignore[operator]
        assert torch.allclose(model.logits_from_words(vectors, None), model(ids), atol=1e-6)
        if not baseline:
            continue
        places = {"position_ids": torch.arange(ids.shape[1])[None] + (2 if family == "roberta" else 0)}
        if family == "xlnet":
            places = {"token_type_ids": torch.tensor([[0] * (ids.shape[1] - 1) + [2]])}
        states = model.encoder(input_ids=ids, **places).last_hidden_state
        at = states[:, model.backbone.class_position]
        assert torch.allclose(model.features(ids, None), model.backbone.pool(at), atol=1e-5)


def test_a_sentence_gets_the_same_logits_alone_and_padded(
    folders: dict[str, Path], family: str, tiny_task: Task
) -> None:
    tokens, model = _tokens(folders[family], tiny_task), _classifier(folders[family])
    together = model(*_padded(tokens))
    for row, expected in zip(tokens.test, together, strict=True):
        assert torch.allclose(model(torch.from_numpy(row.ids)[None])[0], expected, atol=1e-5)


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
@pytest.mark.parametrize("paradigm", BERT_PARADIGMS)
def test_an_epoch_changes_exactly_the_named_parameters(
    folders: dict[str, Path], family: str, tiny_task: Task, paradigm: str, protocol: str
) -> None:
    source = resolve_encoder(str(folders[family]))
    entry, switches = PARADIGMS.get(paradigm), resolve_protocol(protocol)
    setup = TrainingSetup(_tokens(folders[family], tiny_task), source, switches, CPU)
    before = torch.random.get_rng_state()
    options = entry.parse_options({"epochs": 1, "batch_size": 16, "learning_rate": 1e-2})
    (trained,) = entry.target().train(setup, options, [0])
    assert torch.equal(before, torch.random.get_rng_state())
    start = dict(_classifier(folders[family], redrawn=entry.target.redrawn).named_parameters())
    end = dict(trained.module.named_parameters())
    changed = {name for name, value in end.items() if not torch.equal(value, start[name])}
    named = parts_of(family, BACKBONES.get(family).target.parts, entry.target.trained_under(switches))
    assert changed == {name for name in end if _part(family, name) in named} - {"encoder.mask_emb"}
    again = load_trained(trained.to_bytes(), source, CPU)
    ids, mask = _padded(setup.tokens)
    assert torch.equal(again.module(ids, mask), trained.module(ids, mask))


def _part(family: str, name: str) -> str:
    inner = name.removeprefix("encoder.")
    if inner == name:
        return "head"
    if inner.startswith("pooler."):
        return "pooler"
    return "embeddings" if inner.startswith(EMBEDDINGS[family]) else "encoder"


def test_dropout_is_the_given_one_and_only_in_trained_parts(
    folders: dict[str, Path], family: str, tiny_task: Task
) -> None:
    ids, mask = _padded(_tokens(folders[family], tiny_task))
    counts = {}
    for trained in (("head",), ("embeddings", "head"), ("all",)):
        model, seen = _classifier(folders[family], trained=trained), []
        before = torch.random.get_rng_state()
        logits = model.training_logits(ids, mask, lambda values, seen=seen: seen.append(values) or values)
        assert torch.equal(before, torch.random.get_rng_state())
        assert torch.allclose(logits, model(ids, mask), atol=1e-5)
        assert not model.encoder.training
        counts[trained] = len(seen)
    head = counts[("head",)]
    assert head == {"roberta": 2, "electra": 2}.get(family, 1)
    assert counts[("embeddings", "head")] == head + (family != "xlnet")
    assert counts[("all",)] >= head + 5


def test_a_part_that_a_family_lacks_is_refused(folders: dict[str, Path], family: str) -> None:
    if family in POOLED:
        assert "pooler" in _classifier(folders[family], trained=("pooler", "head")).trained
        return
    with pytest.raises(UserError, match=f"family {family} has no part 'pooler'"):
        _classifier(folders[family], trained=("pooler", "head"))


def test_one_layer_attention_reads_where_the_family_reads(
    folders: dict[str, Path], family: str, tiny_task: Task
) -> None:
    tokens = _tokens(folders[family], tiny_task)
    entry, source = PARADIGMS.get("ola_cea"), resolve_encoder(str(folders[family]))
    setup = TrainingSetup(tokens, source, resolve_protocol("corrected"), CPU)
    (trained,) = entry.target().train(setup, entry.parse_options({"epochs": 1}), [0])
    again = load_trained(trained.to_bytes(), source, CPU).module
    assert isinstance(again, OlaClassifier)
    assert again.class_position == tokens.tokenizer.layout.class_position
    ids, mask = _padded(tokens)
    assert torch.equal(again(ids, mask), trained.module(ids, mask))


def test_the_language_modeling_head_is_the_librarys(folders: dict[str, Path], family: str, tiny_task: Task) -> None:
    import transformers

    source = resolve_encoder(str(folders[family]))
    if not BACKBONES.get(family).target.masked_class:
        with pytest.raises(UserError, match="no head that fills in a word"):
            load_masked_lm(source)
        return
    model = load_masked_lm(source)
    whole = getattr(transformers, model.backbone.masked_class).from_pretrained(str(folders[family])).eval()
    for row in _tokens(folders[family], tiny_task).test[:3]:
        ids = torch.from_numpy(row.ids)[None]
        states = model.backbone.states(model.backbone.embed(model.backbone.word_vectors(ids)), None)
        assert torch.allclose(model.scores(states), whole(input_ids=ids).logits, atol=1e-4)
