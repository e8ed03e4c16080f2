"""Options that all model-based methods share, notes, and the check of what a method returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from geco_ray.errors import UserError
from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, ModelOptions, Scores
from geco_ray.geco.explain import Explainer, explain, score
from geco_ray.geco.tokens import TaskTokens
from geco_ray.geco.trained import TrainedClassifier
from geco_ray.registry import Options

CPU = torch.device("cpu")
Trained = dict[tuple[str, str], TrainedClassifier]
MODEL_BASED = [entry.name for entry in ATTRIBUTIONS.entries() if issubclass(entry.options, ModelOptions)]
WITH_BASELINE = ["deeplift", "gradient_shap", "integrated_gradients", "kernel_shap", "lime"]
FEW = {"integrated_gradients": {"n_steps": 4}, "kernel_shap": {"n_samples": 40}, "lime": {"n_samples": 40}}


def _signed(
    trained: Trained, tokens: TaskTokens, protocol: str, method: str, paradigm: str = "bert_c", **options: object
) -> list[list[float]]:
    model, given = trained[paradigm, protocol], FEW.get(method, {}) | options
    found: list[list[float]] = explain(model, tokens, range(18), method, given, protocol=protocol, device=CPU)[
        "signed"
    ].to_pylist()
    return found


def test_all_but_the_two_that_ask_no_classifier_are_model_based() -> None:
    assert set(ATTRIBUTIONS.names()) - set(MODEL_BASED) == {"uniform_random", "pattern_variant"}


@pytest.mark.parametrize("method", WITH_BASELINE)
def test_each_baseline_gives_another_result_and_null_is_pad(
    trained: Trained, tiny_tokens: TaskTokens, method: str
) -> None:
    null, *found = (  # on OLA, since the embedding of BERT's [PAD] is the zero vector
        _signed(trained, tiny_tokens, "corrected", method, "ola_cea", baseline=name)
        for name in (None, "pad", "mask", "unk", "zero")
    )
    assert null == found[0]
    assert all(one != other for i, one in enumerate(found) for other in found[:i])


@pytest.mark.parametrize("method", MODEL_BASED)
def test_scalar_and_class_follow_the_protocol_unless_they_are_given(
    trained: Trained, tiny_tokens: TaskTokens, protocol: str, method: str
) -> None:
    softmax = protocol == "paper" and method in ("integrated_gradients", "kernel_shap", "lime")
    null = _signed(trained, tiny_tokens, protocol, method)
    named = {name: _signed(trained, tiny_tokens, protocol, method, scalar=name) for name in ("logit", "probability")}
    assert null == named["probability" if softmax else "logit"]
    assert null != named["logit" if softmax else "probability"]
    rule = {"corrected": "predicted", "paper": "true"}[protocol]
    if not (protocol == "paper" and method == "lime"):  # the published LIME explains class 1
        assert null == _signed(trained, tiny_tokens, protocol, method, explained_class=rule)
    assert null != _signed(trained, tiny_tokens, protocol, method, explained_class=0)


def test_the_baseline_is_made_from_what_is_a_word(trained: Trained, tiny_tokens: TaskTokens) -> None:
    explainer = Explainer(trained["ola_cea", "corrected"], tiny_tokens, protocol="corrected", device=CPU)
    inputs = explainer._inputs((0, 1), 0, ModelOptions.model_validate({"baseline": "mask"}))
    for sentence in inputs.sentences:
        ids = inputs.baseline_ids(sentence)
        assert (ids[sentence.words >= 0] == tiny_tokens.tokenizer.mask_id).all()
        assert (ids[sentence.words < 0] == sentence.ids[sentence.words < 0]).all()


def test_the_papers_text_is_an_option_set_and_no_part_of_identity() -> None:
    for method, expected in {
        "integrated_gradients": {"n_steps": 50},
        "gradient_shap": {"n_samples": 5},
        "kernel_shap": {"n_samples": 25},
        "lime": {"n_samples": 5000, "num_features": 10},
        "deeplift": {"multiply_by_inputs": True},
    }.items():
        entry = ATTRIBUTIONS.get(method)
        filled = entry.parse_options({"settings": "library_defaults"})
        assert filled.model_dump() == entry.parse_options(expected).model_dump()
        assert "settings" not in filled.model_dump()
    own = ATTRIBUTIONS.get("lime").parse_options({"settings": "library_defaults", "n_samples": 7})
    assert (own.model_dump()["n_samples"], own.model_dump()["num_features"]) == (7, 10)
    with pytest.raises(UserError, match="option 'settings' of 'lime'"):
        ATTRIBUTIONS.get("lime").parse_options({"settings": "defaults"})


def test_yamls_true_is_the_true_class_and_a_class_that_is_not_there_is_refused(
    trained: Trained, tiny_tokens: TaskTokens
) -> None:
    entry = ATTRIBUTIONS.get("saliency")
    assert entry.parse_options({"explained_class": True}) == entry.parse_options({"explained_class": "true"})
    with pytest.raises(UserError, match=r"explained_class: .*'tiny' has no class.*found 3, expected 0 to 2"):
        _signed(trained, tiny_tokens, "corrected", "saliency", explained_class=3)


def test_notes_say_what_a_rule_does_not_reach(trained: Trained, tiny_tokens: TaskTokens, protocol: str) -> None:
    def note(paradigm: str, method: str) -> str:
        table = explain(trained[paradigm, protocol], tiny_tokens, [0, 1], method, protocol=protocol, device=CPU)
        return (table.schema.metadata or {}).get(b"note", b"").decode()

    assert note("bert_c", "saliency") == ""
    assert "plain gradient here: the network has no ReLU" in note("ola_cea", "guided_backprop")
    assert "rounding noise" not in note("ola_cea", "guided_backprop")
    assert "rounding noise" in note("bert_c", "guided_backprop")  # the sum of a gradient through a normalisation is 0
    assert "rule holds for Tanh; the plain gradient for GELUActivation, LayerNorm, attention" in note(
        "bert_c", "deeplift"
    )
    assert "rule holds for Tanh; the plain gradient for attention" in note("ola_cea", "deeplift")


def test_changed_sentences_may_have_any_length_and_any_piece(
    trained: Trained, tiny_tokens: TaskTokens, paradigm: str, protocol: str
) -> None:
    from geco_ray.geco.passes.perturbation import logits

    model = trained[paradigm, protocol]
    explainer = Explainer(model, tiny_tokens, protocol=protocol, device=CPU)
    inputs = explainer._inputs((0,), 0, ModelOptions())
    generator = np.random.default_rng(0)
    layout = explainer.tokens.tokenizer.layout  # a zero-shot model's has its prompt
    drawn = [generator.integers(5, 41, size) for size in (0, 1, 1, 2, 3, 5, 9, 9, 30)]
    rows = [np.array([*layout.prefix, *pieces, *layout.suffix]) for pieces in drawn]
    known = model.module.vocabulary.numpy() if paradigm == "ola_cea" else np.arange(41)
    rows = [
        *rows,
        rows[4],
        np.array([*layout.prefix, np.setdiff1d(np.arange(41), known).max(initial=5), *layout.suffix]),
    ]
    found = logits(inputs, rows)
    for row, values in zip(rows, found, strict=True):
        ids, seen = torch.from_numpy(row)[None], torch.from_numpy(np.isin(row, known))[None, :, None]
        vectors = model.module.word_vectors(ids.where(seen[..., 0], torch.tensor(2))) * seen
        assert values == pytest.approx(model.module.logits_from_words(vectors, None)[0].numpy(), abs=2e-5)


def test_deeplift_follows_olas_activation_which_is_a_module(
    trained: Trained, tiny_tokens: TaskTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a function in its place it would be gradient times difference in silence."""

    class Hidden(torch.nn.Module):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return torch.tanh(values)

    model = trained["ola_cea", "corrected"]
    tables = [explain(model, tiny_tokens, range(18), "deeplift", protocol="corrected", device=CPU)]
    monkeypatch.setitem(model.module._modules, "activation", Hidden())
    tables.append(explain(model, tiny_tokens, range(18), "deeplift", protocol="corrected", device=CPU))
    assert b"rule holds for no module" in tables[1].schema.metadata[b"note"]
    assert tables[0]["explained_change"].to_pylist() == tables[1]["explained_change"].to_pylist()
    assert tables[0]["signed"].to_pylist() != tables[1]["signed"].to_pylist()


# --- what a method returns ---


@pytest.fixture
def method(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[AttributionInputs], Scores]], str]]:
    """Registers a method for the length of a test."""
    ATTRIBUTIONS.names()
    entries = dict(ATTRIBUTIONS._entries)

    def register(function: Callable[[AttributionInputs], Scores]) -> str:
        def target(inputs: AttributionInputs, options: Options) -> Scores:
            return function(inputs)

        ATTRIBUTIONS.register("broken")(target)
        return "broken"

    yield register
    ATTRIBUTIONS._entries.clear()
    ATTRIBUTIONS._entries.update(entries)


def _token_values(inputs: AttributionInputs) -> list[Any]:
    return [np.ones(len(row)) for row in inputs.sentences]


def _word_values(inputs: AttributionInputs) -> list[Any]:
    return [np.ones(row.word_count) for row in inputs.sentences]


@pytest.mark.parametrize(("unit", "make"), [("token", _token_values), ("word", _word_values)])
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda values: values[::-1], r"test row \d+: attribution method 'broken' .*wrong length"),
        (lambda values: [*values[:3], values[3][:-1], *values[4:]], r"test row 3: .* wrong length"),
        (lambda values: [*values[:3], values[3][None], *values[4:]], r"test row 3: .* wrong length"),
        (lambda values: [*values[:3], ["x"] * len(values[3]), *values[4:]], r"test row 3: .* no real numbers"),
        (lambda values: [*values[:3], None, *values[4:]], r"test row 3: .* no attribution and no reason"),
        (lambda values: values[:-1], r"method 'broken' returned another number of attributions.*17.*18"),
    ],
)
def test_a_wrong_return_is_refused_with_method_and_row(
    trained: Trained, tiny_tokens: TaskTokens, method: Any, unit: Any, make: Any, spoil: Any, said: str
) -> None:
    name = method(lambda inputs: Scores(spoil(make(inputs)), unit))
    with pytest.raises(UserError, match=said):
        explain(trained["ola_cea", "paper"], tiny_tokens, range(18), name, protocol="paper", device=CPU)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(("unit", "make"), [("token", _token_values), ("word", _word_values)])
def test_a_row_without_numbers_is_null_with_its_reason_and_leaves_the_others_alone(
    trained: Trained, tiny_tokens: TaskTokens, method: Any, unit: Any, make: Any, bad: float
) -> None:
    def function(inputs: AttributionInputs) -> Scores:
        values = make(inputs)
        values[2][0], values[5] = bad, None
        return Scores(values, unit, reasons=[None] * 5 + ["out_of_budget"] + [None] * 12)

    table = explain(trained["ola_cea", "paper"], tiny_tokens, range(18), method(function), protocol="paper", device=CPU)
    expected = [None] * 18
    expected[2], expected[5] = "non_finite_attribution", "out_of_budget"  # type: ignore[call-overload]
    assert table["reason"].to_pylist() == expected
    for row, (words, attribution) in enumerate(
        zip(table["words"].to_pylist(), table["attribution"].to_pylist(), strict=True)
    ):
        assert len(words) == len(attribution)
        assert (attribution == [None] * len(words)) == (row in (2, 5))
    scored = score(table, protocol="paper")
    assert scored["reason"].to_pylist() == scored["ranking_reason"].to_pylist() == expected
    assert [value is None for value in scored["mass_accuracy"].to_pylist()] == [row in (2, 5) for row in range(18)]
