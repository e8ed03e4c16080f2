"""What a trained classifier says of the test split stands in its table, and what it is in its record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from geco_ray.geco.paradigms.base import PARADIGMS
from geco_ray.geco.tokens import TaskTokens, pad_rows
from geco_ray.geco.trained import TrainedClassifier
from geco_ray.geco.training import model_facts


def facts_of(run: TrainedClassifier) -> dict[str, Any]:
    return model_facts(run, PARADIGMS.get(run.paradigm).target)


Runs = dict[tuple[str, str], TrainedClassifier]


@pytest.fixture
def run(trained: Runs, paradigm: str, protocol: str) -> TrainedClassifier:
    """Each paradigm's classifier under each protocol, of the tiny task."""
    return trained[paradigm, protocol]


def test_the_best_epochs_row_holds_every_test_row_and_no_other_does(
    run: TrainedClassifier, tiny_tokens: TaskTokens
) -> None:
    rows = run.history_table().to_pylist()
    (best,) = [row["test_rows_at_best"] for row in rows if row["best"]]
    assert [row["test_rows_at_best"] for row in rows if not row["best"]] == [None] * (len(rows) - 1)
    task = tiny_tokens.task
    assert [(line["row"], line["sentence_idx"], line["target"]) for line in best] == [
        (number, row.sentence_idx, row.target) for number, row in enumerate(task.test)
    ]
    assert np.mean([line["predicted"] == line["target"] for line in best]) == pytest.approx(run.accuracies.test)


def test_probabilities_are_those_of_the_stored_classifier(run: TrainedClassifier, tiny_tokens: TaskTokens) -> None:
    assert run.test_rows is not None
    if not run.module.decides_by_logits:
        assert run.test_rows.probabilities is None
        return
    tokens = tiny_tokens.laid_out(run.module.layout)
    ids, mask = (torch.from_numpy(array) for array in pad_rows(tokens.test, 0))
    with torch.no_grad():
        expected = run.module(ids, mask).softmax(1).numpy()
    assert run.test_rows.probabilities == pytest.approx(expected, abs=1e-5)


def test_a_record_says_how_many_numbers_a_model_has_and_trains(run: TrainedClassifier) -> None:
    facts = facts_of(run)
    names = {name.split(".")[0] for name in run.module.trained_state()}
    assert facts["parameters"] == sum(parameter.numel() for parameter in run.module.parameters())
    if facts["trained"] == ():
        assert facts["trained_parameters"] == 0
    elif facts["trained"] == ("head",):
        assert names == {"head"}
        assert facts["trained_parameters"] == sum(value.numel() for value in run.module.trained_state().values())
    else:
        assert 0 < facts["trained_parameters"] <= facts["parameters"]


def test_the_papers_cef_head_counts_as_not_trained(trained: Runs) -> None:
    paper, corrected = (facts_of(trained["bert_cef", name]) for name in ("paper", "corrected"))
    assert (paper["trained"], corrected["trained"]) == (("embeddings",), ("embeddings", "head"))
    head = trained["bert_c", "corrected"]
    assert corrected["trained_parameters"] - paper["trained_parameters"] == facts_of(head)["trained_parameters"]
