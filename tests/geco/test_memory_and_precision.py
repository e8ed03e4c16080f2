"""Out of memory, passes are halved and results move by rounding; reduced precision is asked for and moves them more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
import torch

from geco_ray.errors import UserError
from geco_ray.geco.attribution.base import ATTRIBUTIONS, ModelOptions
from geco_ray.geco.explain import Explainer
from geco_ray.geco.passes.memory import is_out_of_memory
from geco_ray.geco.tokens import TaskTokens
from geco_ray.geco.trained import TrainedClassifier

CPU = torch.device("cpu")
ROWS = range(0, 18, 2)
MODEL_BASED = [entry.name for entry in ATTRIBUTIONS.entries() if issubclass(entry.options, ModelOptions)]
FEW = {"integrated_gradients": {"n_steps": 12}, "kernel_shap": {"n_samples": 60}, "lime": {"n_samples": 60}}
Trained = dict[tuple[str, str], TrainedClassifier]


def _moved(one: pa.Table, other: pa.Table) -> float:
    """The largest change of a word's signed score, relative to its sentence's largest."""
    pairs = zip(one["signed"].to_pylist(), other["signed"].to_pylist(), strict=True)
    return max(float(np.abs(np.subtract(a, b)).max() / max(np.abs(a).max(), 1e-30)) for a, b in pairs)


@pytest.fixture
def small_device(monkeypatch: pytest.MonkeyPatch) -> Callable[[Explainer, int], None]:
    """A device that is out of memory for passes of more than so many tokens."""

    def limit(explainer: Explainer, tokens: int) -> None:
        module, forward = explainer.module, explainer.module.logits_from_words

        def watched(vectors: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
            if vectors.shape[0] * vectors.shape[1] > tokens:
                raise torch.OutOfMemoryError("too much")
            return forward(vectors, mask)

        monkeypatch.setattr(module, "logits_from_words", watched)

    return limit


@pytest.mark.parametrize("method", ["saliency", "integrated_gradients", "kernel_shap", "lime"])
def test_out_of_memory_halves_the_passes(
    trained: Trained, tiny_tokens: TaskTokens, small_device: Callable[[Explainer, int], None], method: str
) -> None:
    explainer = Explainer(trained["bert_c", "corrected"], tiny_tokens, protocol="corrected", device=CPU)
    whole = explainer.explain(ROWS, method, FEW.get(method))
    assert explainer.memory_halvings == 0
    limited = Explainer(trained["bert_c", "corrected"], tiny_tokens, protocol="corrected", device=CPU)
    limited.token_budget = 512
    small_device(limited, 100)
    halved = limited.explain(ROWS, method, FEW.get(method))
    assert _moved(whole, halved) <= 2e-5
    assert limited.memory_halvings == (0 if method == "saliency" else 3)  # its four short rows fit at once


def test_out_of_memory_at_the_smallest_passes_is_said(
    trained: Trained, tiny_tokens: TaskTokens, small_device: Callable[[Explainer, int], None]
) -> None:
    explainer = Explainer(trained["bert_c", "corrected"], tiny_tokens, protocol="corrected", device=CPU)
    small_device(explainer, 0)
    with pytest.raises(torch.OutOfMemoryError, match="too much"):
        explainer.explain(ROWS, "saliency")


def test_other_faults_are_not_taken_for_a_lack_of_memory() -> None:
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"))
    assert not is_out_of_memory(RuntimeError("shapes differ"))
    assert not is_out_of_memory(ValueError("can't allocate memory"))


@pytest.mark.parametrize("method", MODEL_BASED)
def test_bfloat16_moves_scores_a_little_and_predictions_not_at_all(
    trained: Trained, tiny_tokens: TaskTokens, method: str
) -> None:
    explainer = Explainer(trained["ola_cea", "corrected"], tiny_tokens, protocol="corrected", device=CPU)
    options = FEW.get(method, {})
    full = explainer.explain(ROWS, method, options)
    reduced = explainer.explain(ROWS, method, {**options, "precision": "bfloat16"})
    assert 0 < _moved(full, reduced) < 0.3
    assert reduced["predicted"].equals(full["predicted"])
    assert explainer.explain(ROWS, method, options).equals(full)  # and leaves nothing behind


def test_tf32_is_refused_where_there_is_none(trained: Trained, tiny_tokens: TaskTokens) -> None:
    explainer = Explainer(trained["ola_cea", "corrected"], tiny_tokens, protocol="corrected", device=CPU)
    with pytest.raises(UserError, match="no TF32"):
        explainer.explain(ROWS, "saliency", {"precision": "tf32"})


def test_precision_is_part_of_what_identifies_a_result() -> None:
    options = ATTRIBUTIONS.get("saliency").parse_options({"precision": "tf32"})
    assert options.model_dump()["precision"] == "tf32"
