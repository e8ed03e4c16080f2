"""Attribution methods against Captum and the lime package, one sentence at a time, from the protocols' description."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from captum.attr import (
    DeepLift,
    GradientShap,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    KernelShap,
    LayerIntegratedGradients,
    Saliency,
)
from scipy.linalg import lstsq
from sklearn.linear_model import LinearRegression
from torch import Tensor, nn

from geco_ray.geco.attribution.base import ATTRIBUTIONS
from geco_ray.geco.attribution.kernel_shap import draw_coalitions, fit_coalitions
from geco_ray.geco.attribution.lime import draw_words
from geco_ray.geco.explain import explain
from geco_ray.geco.pretrained.classifier import EncoderClassifier
from geco_ray.geco.tokens import TaskTokens
from geco_ray.geco.trained import TrainedClassifier
from geco_ray.seeds import numpy_stream

CPU = torch.device("cpu")
Trained = dict[tuple[str, str], TrainedClassifier]


class Network(nn.Module):
    """Word embeddings to logits through transformers' own forward pass, or OLA's."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, vectors: Tensor) -> Tensor:
        if isinstance(self.model, EncoderClassifier):
            logits: Tensor = self.model.head(self.model.encoder(inputs_embeds=vectors).pooler_output)
            return logits
        return self.model.logits_from_words(vectors, None)  # type: ignore[operator,no-any-return]


@dataclass
class Sentence:
    """One sentence as a notebook would explain it."""

    trained: TrainedClassifier
    paper: bool
    ids: Tensor
    words: np.ndarray
    target: int
    row: int

    @property
    def network(self) -> Network:
        return Network(self.trained.module)

    @property
    def absent(self) -> Tensor:
        """``[CLS] [PAD] ... [SEP]``, with the prompt where it stays."""
        return torch.where(torch.from_numpy(self.words) == -1, self.ids, 0)

    def point(self, ids: Tensor) -> Tensor:
        """Where the gradient methods attribute; with ``paper`` embedded, to be embedded again."""
        words = self.trained.module.word_vectors(ids)
        return (self.trained.module.embed(words) if self.paper else words).detach()

    def stream(self, method: str) -> np.random.Generator:
        model = self.trained
        return numpy_stream("geco", "explain", "tiny", model.paradigm, model.depends_on, model.seed, method, self.row)

    def probability(self, ids: Tensor) -> Tensor:
        """What perturbation methods explain, of every class."""
        logits = self.network(self.trained.module.word_vectors(ids))
        return self.trained.module.probabilities(logits) if self.paper else logits


def _gradient(kind: type) -> Callable[[Sentence], Tensor]:
    def run(it: Sentence) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: Tensor = kind(it.network).attribute(it.point(it.ids).requires_grad_(True), target=it.target)
        return found.sum(2)

    return run


def _integrated_gradients(it: Sentence) -> Tensor:
    model, inner = it.trained.module, it.network
    if not it.paper:
        words = model.word_vectors
        return (
            IntegratedGradients(inner).attribute(words(it.ids), words(it.absent), target=it.target, n_steps=12).sum(2)
        )

    if isinstance(model, EncoderClassifier):

        def whole(ids: Tensor) -> Tensor:
            return model.head(model.encoder(input_ids=ids).pooler_output).softmax(1)

        layered = LayerIntegratedGradients(whole, model.encoder.embeddings)
        return layered.attribute(it.ids, it.absent, target=it.target, n_steps=12).sum(2)
    ends = [model.embed(model.word_vectors(ids)) for ids in (it.ids, it.absent)]
    probability = IntegratedGradients(lambda points: model.probabilities(model.logits_from_embedded(points, None)))
    return probability.attribute(*ends, target=it.target, n_steps=12).sum(2)


def _deep_lift(it: Sentence) -> Tensor:
    point = it.point(it.ids).requires_grad_(True)
    base = it.absent[..., None].expand(point.shape).to(point.dtype) if it.paper else it.point(it.absent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DeepLift(it.network, multiply_by_inputs=not it.paper).attribute(point, base, target=it.target).sum(2)


def _gradient_shap(it: Sentence) -> Tensor:
    alphas = it.stream("gradient_shap").spawn(2)[0].random(7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "uniform", lambda low, high, size: alphas)
        method, point = GradientShap(it.network), it.point(it.ids)
        return method.attribute(point, it.point(it.absent), target=it.target, n_samples=7, stdevs=0.0).sum(2)


class Float64Fit:
    """Captum's linear model with the same design and weights in float64, of values that were not rounded either."""

    def __init__(self, values: list[Tensor]) -> None:
        self.values = values

    def fit(self, batches: Iterable[tuple[Tensor, Tensor, Tensor]]) -> None:
        ((design, _, weights),) = batches
        targets = torch.cat(self.values).numpy()
        self.model = LinearRegression().fit(design.double().numpy(), targets, weights.double().numpy())

    def representation(self) -> Tensor:
        return torch.from_numpy(self.model.coef_)


def _kernel_shap(it: Sentence) -> Tensor:
    feature = np.arange(len(it.words)) if it.paper else it.words
    present = np.unique(feature[feature >= 0])
    coalitions, _ = draw_coalitions(it.stream("kernel_shap"), len(present), 60)
    values: list[Tensor] = []

    def forward(kept: Tensor) -> Tensor:
        stays = np.isin(feature, present[kept[0].numpy() > 0.5]) | (feature < 0)
        found = it.probability(torch.where(torch.from_numpy(stays), it.ids, it.absent)).to(torch.float64)
        values.append(found[:, it.target])
        return found

    def ours(_: object, **__: object) -> Iterator[Tensor]:
        yield from torch.from_numpy(coalitions)[:, None].long()

    method = KernelShap(forward)
    method.perturb_func = ours
    if not it.trained.module.decides_by_logits:  # with the prompt's tokens they are more than 25: see below
        method.interpretable_model = Float64Fit(values)
    ones = torch.ones(1, len(present))
    found = method.attribute(ones, torch.zeros_like(ones), target=it.target, n_samples=60)
    result = torch.zeros(1, len(feature))
    for number, value in zip(present, found[0], strict=True):  # a word's value on its first piece
        result[0, int(np.flatnonzero(feature == number)[0])] = value
    return result


IN_CAPTUM: dict[str, tuple[Callable[[Sentence], Tensor], dict[str, object]]] = {
    "saliency": (_gradient(Saliency), {}),
    "input_x_gradient": (_gradient(InputXGradient), {}),
    "guided_backprop": (_gradient(GuidedBackprop), {}),
    "integrated_gradients": (_integrated_gradients, {"n_steps": 12}),
    "deeplift": (_deep_lift, {}),
    "gradient_shap": (_gradient_shap, {"n_samples": 7}),
    "kernel_shap": (_kernel_shap, {"n_samples": 60}),
}
NOT_IN_CAPTUM = {
    "lime": "is held to the original package below",
    "pattern_variant": "needs no classifier; is held to the published means",
    "uniform_random": "is drawn; its stream and its means are tested",
}


def test_every_method_is_compared() -> None:
    compared = sorted([*IN_CAPTUM, *NOT_IN_CAPTUM])
    assert ATTRIBUTIONS.names() == compared, "compare it with Captum, or say in NOT_IN_CAPTUM what holds it instead"


def _words(values: Tensor, it: Sentence, count: int) -> np.ndarray:
    scores = values.detach().numpy().reshape(-1)
    return np.array([scores[it.words == word].sum() for word in range(count)])


def _sentences(model: TrainedClassifier, tokens: TaskTokens, protocol: str, predicted: list[int]) -> Iterator[Sentence]:
    for row, sentence in enumerate(tokens.laid_out(model.module.layout).test):
        target = predicted[row] if protocol == "corrected" else tokens.task.test[row].target
        ids = torch.from_numpy(sentence.ids)[None]
        yield Sentence(model, protocol == "paper", ids, sentence.words, target, row)


@pytest.mark.parametrize("method", list(IN_CAPTUM))
def test_equal_to_captum_one_by_one(
    trained: Trained, tiny_tokens: TaskTokens, paradigm: str, protocol: str, method: str
) -> None:
    captum, options = IN_CAPTUM[method]
    model = trained[paradigm, protocol]
    published_zero_shot = not model.module.decides_by_logits
    # Quotients of small differences, and a fit of little more coalitions than tokens, enlarge the passes' rounding.
    if method == "deeplift" or (method == "kernel_shap" and published_zero_shot):
        model = dataclasses.replace(model, module=copy.deepcopy(model.module).double())
    table = explain(model, tiny_tokens, range(18), method, options, protocol=protocol, device=CPU)
    noise = b"rounding noise" in (table.schema.metadata or {}).get(b"note", b"")
    size = explain(model, tiny_tokens, range(18), "saliency", protocol=protocol, device=CPU)["signed"].to_pylist()
    sentences = _sentences(model, tiny_tokens, protocol, table["predicted"].to_pylist())
    for it, signed in zip(sentences, table["signed"].to_pylist(), strict=True):
        expected = _words(captum(it), it, len(signed))
        scale = max(size[it.row]) if noise else np.abs(expected).max()
        # Below float32's resolution of a probability there is nothing to compare.
        assert np.abs(expected - signed).max() <= 2e-5 * scale + 1e-8, (method, it.row)


def test_guided_backprop_stops_negative_gradients_at_relu_modules() -> None:
    from geco_ray.geco.attribution.guided_backprop import guided

    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 1))
        points = torch.randn(5, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = GuidedBackprop(network).attribute(points.clone().requires_grad_(True))
    plain = torch.autograd.grad(network(points.requires_grad_(True)).sum(), points)[0]
    with guided([module for module in network if isinstance(module, nn.ReLU)]):
        (found,) = torch.autograd.grad(network(points).sum(), points)
    assert torch.equal(found, expected)
    assert not torch.allclose(found, plain)
    assert torch.equal(plain, torch.autograd.grad(network(points).sum(), points)[0])  # the hooks are gone


def test_the_fit_of_coalitions_is_scikit_learns_in_float64() -> None:
    for features, samples in ((5, 60), (12, 300), (48, 60), (20, 25)):  # the last is singular
        coalitions, weights = draw_coalitions(np.random.default_rng(features), features, samples)
        values = np.random.default_rng(1).normal(size=samples)
        model = LinearRegression().fit(coalitions.astype(np.float64), values, sample_weight=weights)
        assert fit_coalitions(coalitions, values, weights) == pytest.approx(model.coef_, abs=1e-9)


def test_captums_fit_in_float32_loses_digits_beyond_25_features_by_its_solver_alone() -> None:
    """LAPACK's gelsd divides and conquers there, exact relative to the largest singular value: two weights are 1e6."""
    for features, lossy in ((25, False), (48, True)):
        coalitions, weights = draw_coalitions(np.random.default_rng(features), features, 60)
        values, share = np.random.default_rng(1).random(60), weights / weights.sum()
        exact = fit_coalitions(coalitions, values, weights)
        rounded = (part.astype(np.float32) for part in (coalitions, values, weights))
        far = np.abs(LinearRegression().fit(*rounded).coef_ - exact).max() / np.abs(exact).max()
        assert (1e-4 < far < 0.1) if lossy else far < 2e-5
        root = np.sqrt(weights)
        left, right = (coalitions - share @ coalitions) * root[:, None], (values - share @ values) * root
        assert np.linalg.matrix_rank(left, 1e-3) == features  # regular: not what loses the digits
        other, *_ = lstsq(left.astype(np.float32), right.astype(np.float32), cond=1e-6, lapack_driver="gelsy")
        assert np.abs(other - exact).max() <= 2e-5 * np.abs(exact).max()


def test_all_subsets_give_shapley_values() -> None:
    """Of a game whose values are known: a sum, and a bonus of 6 that the first three players share."""
    coalitions, weights = draw_coalitions(np.random.default_rng(0), 6, None)
    assert len(np.unique(coalitions, axis=0)) == len(coalitions) == 64
    values = coalitions @ np.arange(6.0) + 6 * coalitions[:, :3].all(1)
    assert fit_coalitions(coalitions, values, weights) == pytest.approx([2, 3, 4, 3, 4, 5], abs=1e-4)
    assert len(draw_coalitions(np.random.default_rng(0), 12, None)[0]) == 2 * 12 + 2048


@pytest.mark.parametrize(("features", "samples", "rows"), [(0, None, 2), (1, None, 2), (1, 25, 2), (2, 25, 25)])
def test_few_features_have_few_coalitions(features: int, samples: int | None, rows: int) -> None:
    coalitions, weights = draw_coalitions(np.random.default_rng(0), features, samples)
    assert coalitions.shape == (rows, features)
    assert len(weights) == rows
    assert fit_coalitions(coalitions, coalitions.sum(1) * 3.0, weights) == pytest.approx([3.0] * features, abs=1e-4)


class _Drawn:
    """Gives the lime package the draws of ours where it asks its generator."""

    def __init__(self, kept: np.ndarray) -> None:
        self.absent = [np.flatnonzero(~row) for row in kept[1:]]

    def randint(self, low: int, high: int, size: int) -> np.ndarray:
        return np.array([len(row) for row in self.absent])

    def choice(self, features: range, size: int, replace: bool) -> np.ndarray:
        return self.absent.pop(0)


def test_words_by_position_are_the_packages_own_on_one_draw(
    trained: Trained, tiny_tokens: TaskTokens, paradigm: str
) -> None:
    from lime.lime_text import LimeTextExplainer

    model = trained[paradigm, "corrected"]
    table = explain(model, tiny_tokens, range(18), "lime", {"n_samples": 80}, protocol="corrected", device=CPU)
    sentences = _sentences(model, tiny_tokens, "corrected", table["predicted"].to_pylist())
    for it, signed in zip(sentences, table["signed"].to_pylist(), strict=True):
        present = np.unique(it.words[it.words >= 0])

        def classify(texts: list[str], it: Sentence = it) -> np.ndarray:
            stays = [[int(word) for word in text.split() if word != "gone"] for text in texts]
            rows = [np.where(np.isin(it.words, [*row, -1]), it.ids[0], it.absent[0]) for row in stays]
            return np.concatenate([it.probability(torch.from_numpy(row)[None]).detach().numpy() for row in rows])

        explainer = LimeTextExplainer(bow=False, mask_string="gone", split_expression=str.split)
        explainer.random_state = _Drawn(draw_words(it.stream("lime"), len(present), 80))
        text = " ".join(map(str, present))
        found = explainer.explain_instance(text, classify, labels=(it.target,), num_features=99, num_samples=80)
        expected = np.zeros(len(signed))
        for feature, weight in found.local_exp[it.target]:
            expected[present[feature]] = weight
        assert np.abs(expected - signed).max() <= 2e-5 * np.abs(expected).max(), it.row


def test_the_published_lime_gives_a_token_the_weight_of_a_word_that_contains_it(
    trained: Trained, tiny_tokens: TaskTokens
) -> None:
    model = trained["bert_c", "paper"]
    tables = [
        explain(model, tiny_tokens, range(18), "lime", options, protocol="paper", device=CPU)["signed"].to_pylist()
        for options in ({}, {"explained_class": 1}, {"explained_class": 2}, {"text": "clean"})
    ]
    assert tables[0] == tables[1] != tables[2]  # class 1, whatever is true
    assert tables[0] != tables[3]
    for row, signed in zip(tiny_tokens.task.test, tables[0], strict=True):
        weight = dict(zip(row.words, signed, strict=True))
        assert weight["."] == 0
        if "He" in weight:
            found = weight["He"]
            assert found in (weight["the"], max(weight["the"], found, key=abs))
