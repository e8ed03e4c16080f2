"""What each paradigm trains, draws and stores: exactly the parts that it names, and nothing else."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from geco_ray.errors import GecoRayError, UserError
from geco_ray.geco.dropout import Dropout
from geco_ray.geco.encoders import EncoderSource
from geco_ray.geco.fitting import Part, Recipe, fit
from geco_ray.geco.model_parts import MODEL_PARTS
from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
from geco_ray.geco.paradigms.bert import BertParadigm
from geco_ray.geco.pretrained.classifier import EncoderClassifier
from geco_ray.geco.pretrained.loading import load_backbone
from geco_ray.geco.protocol import PROTOCOLS, resolve_protocol
from geco_ray.geco.tokens import TaskTokens, pad_rows
from geco_ray.geco.trained import TrainedClassifier
from geco_ray.geco.training import GENERAL_SEED, load_trained, validation_split
from geco_ray.seeds import torch_stream

CPU = torch.device("cpu")
TRAINED = {
    ("bert_c", "corrected"): {"head"},
    ("bert_c", "paper"): {"head"},
    ("bert_ce", "corrected"): {"embeddings", "head"},
    ("bert_ce", "paper"): {"embeddings", "head"},
    ("bert_cef", "corrected"): {"embeddings", "head"},
    ("bert_cef", "paper"): {"embeddings"},
    ("bert_cefaf", "corrected"): set(MODEL_PARTS),
    ("bert_cefaf", "paper"): set(MODEL_PARTS),
}
"""The parts whose parameters training changes."""
TABLES = {f"{table}_embeddings.weight" for table in ("word", "position", "token_type")}
REDRAWN = {"bert_ce": {f"encoder.embeddings.{table}" for table in TABLES}}
"""Parameters below the head that do not start from the encoder's."""
RATES = {"bert_c": 1e-2, "bert_ce": 1e-4, "bert_cef": 1e-2, "bert_cefaf": 5e-6}
"""The published learning rates."""
NOT_TRAINED = {"bert_zs", "bert_zs_label_embedding"}
NOT_BERT = {"ola_cea", *NOT_TRAINED}

Runs = dict[tuple[str, str], TrainedClassifier]


def _train(
    tokens: TaskTokens, source: EncoderSource, paradigm: str, protocol: str, **options: object
) -> TrainedClassifier:
    entry = PARADIGMS.get(paradigm)
    setup = TrainingSetup(tokens, source, resolve_protocol(protocol), CPU)
    (trained,) = entry.target().train(setup, entry.parse_options({"batch_size": 16, **options}), [0])
    return trained


@pytest.fixture(scope="module")
def one_epoch(tiny_tokens: TaskTokens, tiny_source: EncoderSource) -> Runs:
    """Every BERT paradigm after one epoch, at a rate that shows in float32."""
    return {key: _train(tiny_tokens, tiny_source, *key, epochs=1, learning_rate=1e-2) for key in TRAINED}


def _start(source: EncoderSource, paradigm: str) -> dict[str, torch.Tensor]:
    """The parameters that training started from."""
    redrawn = PARADIGMS.get(paradigm).target.redrawn
    model = EncoderClassifier(load_backbone(source), 3, seed=GENERAL_SEED, redrawn=redrawn)
    return dict(model.state_dict())


def _part_of(name: str) -> str:
    return name.removeprefix("encoder.").split(".")[0]


def test_every_paradigm_is_in_the_tables() -> None:
    found = {name for name, _ in TRAINED} | NOT_BERT
    assert PARADIGMS.names() == sorted(found), "add the parts that it trains to TRAINED and its rate to RATES"
    assert set(RATES) | NOT_BERT == found
    assert set(TRAINED) == {(name, protocol) for name in RATES for protocol in PROTOCOLS}


@pytest.mark.parametrize("paradigm", list(RATES))
def test_defaults_are_the_papers(paradigm: str) -> None:
    expected = {"epochs": 20, "batch_size": 32, "learning_rate": RATES[paradigm], "epsilon": 1e-8, "dropout": 0.1}
    expected |= {"precision": "float32"}
    assert PARADIGMS.get(paradigm).parse_options({}).model_dump() == expected


def test_the_page_on_grids_lists_what_each_paradigm_trains() -> None:
    page = (Path(__file__).parents[2] / "docs" / "grids.md").read_text(encoding="utf-8")
    for entry in PARADIGMS.entries():
        if entry.name in NOT_TRAINED:
            assert f"| {entry.title} | nothing | nothing | |" in page
            continue
        kind, options = entry.target, entry.parse_options({}).model_dump()
        trained, redrawn = (", ".join(getattr(kind, name, ["all"])) for name in ("trained", "redrawn"))
        numbers = f"{options['learning_rate']}, {options['epochs']}, {options['batch_size']}"
        assert f"| {entry.title} | {trained} | {redrawn} | {numbers} |" in page


@pytest.mark.parametrize("key", list(TRAINED))
def test_an_epoch_changes_the_trained_parameters_and_no_other(
    one_epoch: Runs, tiny_source: EncoderSource, key: tuple[str, str]
) -> None:
    start, end = _start(tiny_source, key[0]), one_epoch[key].module.state_dict()
    changed = {name for name, tensor in end.items() if not torch.equal(tensor, start[name])}
    assert changed == {name for name in end if _part_of(name) in TRAINED[key]}


@pytest.mark.parametrize("paradigm", list(RATES))
def test_what_is_not_redrawn_starts_from_the_encoder(tiny_source: EncoderSource, paradigm: str) -> None:
    encoder = {f"encoder.{name}": tensor for name, tensor in load_backbone(tiny_source).model.state_dict().items()}
    start = _start(tiny_source, paradigm)
    changed = {name for name, tensor in encoder.items() if not torch.equal(tensor, start[name])}
    assert changed == REDRAWN.get(paradigm, set())


def test_redrawn_tables_are_xavier_uniform_and_differ_by_seed(tiny_source: EncoderSource) -> None:
    one, other = (
        EncoderClassifier(load_backbone(tiny_source), 3, seed=s, redrawn=("embeddings", "head")) for s in (1, 2)
    )
    for name in TABLES:
        table = one.state_dict()[f"encoder.embeddings.{name}"]
        bound = math.sqrt(6 / sum(table.shape))
        assert 0.8 * bound < table.abs().max() <= bound
        assert not torch.equal(table, other.state_dict()[f"encoder.embeddings.{name}"])


@pytest.mark.parametrize("key", list(TRAINED))
def test_what_is_stored_are_the_trained_and_redrawn_parts(one_epoch: Runs, key: tuple[str, str]) -> None:
    parts = TRAINED[key] | set(PARADIGMS.get(key[0]).target.redrawn)
    assert {_part_of(name) for name in one_epoch[key].module.trained_state()} == parts


@pytest.mark.parametrize("key", list(TRAINED))
def test_stored_and_rebuilt_gives_the_same_logits(
    one_epoch: Runs, tiny_tokens: TaskTokens, tiny_source: EncoderSource, key: tuple[str, str]
) -> None:
    again = load_trained(one_epoch[key].to_bytes(), tiny_source, CPU)
    ids, mask = (torch.from_numpy(array) for array in pad_rows(tiny_tokens.test, 0))
    assert torch.equal(again.module(ids, mask), one_epoch[key].module(ids, mask))
    assert not any(parameter.requires_grad for parameter in again.module.parameters())


@pytest.mark.parametrize("key", list(TRAINED))
def test_alone_and_in_a_batch_a_sentence_gets_the_same_logits(
    one_epoch: Runs, tiny_tokens: TaskTokens, key: tuple[str, str]
) -> None:
    ids, mask = (torch.from_numpy(array) for array in pad_rows(tiny_tokens.test, 0))
    together = one_epoch[key].module(ids, mask)
    for row, sentence in enumerate(tiny_tokens.test):
        alone = one_epoch[key].module(torch.from_numpy(sentence.ids)[None])
        assert torch.allclose(alone[0], together[row], atol=1e-5)


def test_seeds_of_one_run_do_not_train_each_others_encoder(tiny_tokens: TaskTokens, tiny_source: EncoderSource) -> None:
    entry = PARADIGMS.get("bert_cefaf")
    setup = TrainingSetup(tiny_tokens, tiny_source, resolve_protocol("corrected"), CPU)
    options = entry.parse_options({"epochs": 1, "learning_rate": 1e-2})
    together = [run.to_bytes() for run in entry.target().train(setup, options, [0, 1])]
    (alone,) = entry.target().train(setup, options, [1])
    assert together[1] == alone.to_bytes()


@pytest.mark.parametrize("paradigm", [name for name, protocol in TRAINED if protocol == "paper" and name != "bert_c"])
def test_the_papers_loop_equals_a_plain_one_through_transformers(
    tiny_tokens: TaskTokens, tiny_source: EncoderSource, paradigm: str
) -> None:
    """The library's own model, eval mode, whole padded set: the same losses up to rounding."""
    from transformers import BertForSequenceClassification

    run = _train(tiny_tokens, tiny_source, paradigm, "paper", epochs=3, learning_rate=1e-3)
    kind = PARADIGMS.get(paradigm).target
    model = EncoderClassifier(load_backbone(tiny_source), 3, seed=GENERAL_SEED, redrawn=kind.redrawn)
    model.encoder.config.num_labels = 3
    with torch.random.fork_rng(devices=[]):
        whole = BertForSequenceClassification(model.encoder.config).eval()
    whole.bert, whole.classifier = model.encoder, model.head
    parts = []
    for index in validation_split(tiny_tokens.task.train, resolve_protocol("paper")):
        ids, mask = (torch.from_numpy(array) for array in pad_rows([tiny_tokens.train[i] for i in index], 0, 40))
        parts.append(Part((ids, mask.long()), torch.tensor([tiny_tokens.task.train[i].target for i in index])))
    names = TRAINED[paradigm, "paper"]
    parameters = [value.requires_grad_() for name, value in model.named_parameters() if _part_of(name) in names]

    def forward(inputs: tuple[torch.Tensor, ...], training: bool) -> torch.Tensor:
        logits: torch.Tensor = whole(input_ids=inputs[0], attention_mask=inputs[1]).logits
        return logits

    recipe = Recipe(3, 16, 1e-3, 0.0, 1e-8, False, False, False)
    _, history = fit(parameters, forward, *parts, recipe, torch_stream("geco", "train", paradigm, 0))
    for ours, theirs in zip(run.history, history, strict=True):
        assert ours.train_loss == pytest.approx(theirs.train_loss, rel=1e-3)
        assert ours.validation_loss == pytest.approx(theirs.validation_loss, rel=1e-3)


def test_dropout_acts_under_corrected_only_and_inside_trained_parts_only(
    tiny_tokens: TaskTokens, tiny_source: EncoderSource
) -> None:
    ids, mask = (torch.from_numpy(array) for array in pad_rows(tiny_tokens.test, 0))
    counts = {}
    for paradigm in RATES:
        seen: list[torch.Tensor] = []
        trained = PARADIGMS.get(paradigm).target.trained
        model = EncoderClassifier(load_backbone(tiny_source), 3, seed=0, trained=trained)
        logits = model.training_logits(ids, mask, lambda values, seen=seen: seen.append(values) or values)
        assert torch.allclose(logits, model(ids, mask), atol=1e-5)
        counts[paradigm] = len(seen)
    in_layers = 3 * 2  # attention weights and two outputs in each of two layers
    assert counts == {"bert_c": 1, "bert_ce": 2, "bert_cef": 2, "bert_cefaf": 2 + in_layers}
    runs = {
        (protocol, rate): _train(tiny_tokens, tiny_source, "bert_cefaf", protocol, epochs=1, dropout=rate).history
        for protocol in PROTOCOLS
        for rate in (0.0, 0.5)
    }
    assert runs["paper", 0.0] == runs["paper", 0.5]
    assert runs["corrected", 0.0] != runs["corrected", 0.5]


def test_dropout_keeps_its_share_and_the_mean() -> None:
    dropped = Dropout(0.25, 3, "cpu")(torch.ones(400, 400))
    assert set(dropped.unique().tolist()) == {0.0, float(torch.tensor(1.0) / 0.75)}
    assert float((dropped == 0).float().mean()) == pytest.approx(0.25, abs=0.01)
    assert torch.equal(dropped, Dropout(0.25, 3, "cpu")(torch.ones(400, 400)))


@pytest.mark.parametrize(
    ("trained", "redrawn", "words"),
    [
        (("classification",), ("head",), "the model has no part 'classification'"),
        (("embeddings",), ("head", "embedding"), "Did you mean 'embeddings'"),
        (("head",), (), "the head is not drawn"),
    ],
)
def test_a_part_that_no_model_has_is_refused_where_it_is_declared(
    trained: tuple[str, ...], redrawn: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        type("Wrong", (BertParadigm,), {"trained": trained, "redrawn": redrawn})


def test_a_loss_that_is_not_a_number_stops_at_its_step_with_its_place() -> None:
    weight = torch.nn.Parameter(torch.zeros(2, 2))
    part = Part((torch.ones(4, 2),), torch.tensor([0, 1, 0, 1]))
    calls = iter(range(100))

    def forward(inputs: tuple[torch.Tensor, ...], training: bool) -> torch.Tensor:
        return inputs[0] @ weight * (math.nan if training and next(calls) == 5 else 1.0)

    recipe = Recipe(6, 1, 0.5, 0.0, 1e-8, False, True, True)
    with pytest.raises(GecoRayError, match=r"the loss is nan at step 2 of 4 of epoch 2 \(learning rate 0\.\d+"):
        fit([weight], forward, part, part, recipe, torch.Generator().manual_seed(0))
