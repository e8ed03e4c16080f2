"""Training in bfloat16: its passes only, from the same start, with float32 weights and evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from geco_ray.geco.encoders import EncoderSource
from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
from geco_ray.geco.paradigms.bert import BertOptions
from geco_ray.geco.protocol import resolve_protocol
from geco_ray.geco.tokens import TaskTokens, pad_rows
from geco_ray.geco.trained import TrainedClassifier
from geco_ray.registry import OptionError

CPU = torch.device("cpu")
BERT = [entry.name for entry in PARADIGMS.entries() if issubclass(entry.options, BertOptions)]
Train = Callable[..., TrainedClassifier]


@pytest.fixture
def train(tiny_tokens: TaskTokens, tiny_source: EncoderSource) -> Train:
    """One epoch of a paradigm on the tiny task."""

    def run(paradigm: str, **options: Any) -> TrainedClassifier:
        entry = PARADIGMS.get(paradigm)
        setup = TrainingSetup(tiny_tokens, tiny_source, resolve_protocol("corrected"), CPU)
        given = {"epochs": 1, "batch_size": 16, "learning_rate": 1e-2, **options}
        (trained,) = entry.target().train(setup, entry.parse_options(given), [0])
        return trained

    return run


@pytest.mark.parametrize("paradigm", BERT)
def test_bfloat16_moves_a_training_by_its_rounding_and_not_more(train: Train, paradigm: str) -> None:
    plain, coarse = (train(paradigm, precision=precision) for precision in ("float32", "bfloat16"))
    assert plain.history != coarse.history
    assert coarse.history[0].train_loss == pytest.approx(plain.history[0].train_loss, rel=0.05)


@pytest.mark.parametrize("paradigm", BERT)
def test_bfloat16_stores_float32_and_repeats_itself(train: Train, paradigm: str) -> None:
    first, second = (train(paradigm, precision="bfloat16") for _ in range(2))
    assert first.to_bytes() == second.to_bytes()
    assert {tensor.dtype for tensor in first.module.trained_state().values()} == {torch.float32}


@pytest.mark.parametrize("paradigm", BERT)
def test_accuracies_of_a_bfloat16_training_are_those_of_float32_predictions(
    train: Train, tiny_tokens: TaskTokens, paradigm: str
) -> None:
    trained = train(paradigm, precision="bfloat16", epochs=3)
    ids, mask = (torch.from_numpy(array) for array in pad_rows(tiny_tokens.test, 0))
    with torch.no_grad():
        right = trained.module(ids, mask).argmax(1).numpy() == [row.target for row in tiny_tokens.task.test]
    assert trained.accuracies.test == pytest.approx(right.mean())


def test_another_precision_is_refused() -> None:
    with pytest.raises(OptionError, match="precision"):
        PARADIGMS.get(BERT[0]).parse_options({"precision": "float16"})
