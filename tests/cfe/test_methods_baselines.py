"""KD-tree and Wachter against independent computations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geco_ray.cfe.generation import generate
from geco_ray.cfe.methods.base import METHODS, Answer, GenerationTask


def answers(name: str, task: GenerationTask, factuals: np.ndarray, **options: object) -> list[Answer]:
    entry = METHODS.get(name)
    prepared = entry.target(task, entry.parse_options(options))
    return prepared.generate(factuals, list(range(len(factuals))))


def test_kdtree_is_the_nearest_row_that_is_predicted_favourable(
    toy_task: GenerationTask, toy_factuals: np.ndarray
) -> None:
    accepted = toy_task.model.favourable(toy_task.train_x)
    assert not np.array_equal(accepted, toy_task.train_y == 1), "prediction and label must differ for this test"
    for factual, answer in zip(toy_factuals, answers("kdtree", toy_task, toy_factuals), strict=True):
        gaps = np.linalg.norm(toy_task.train_x.astype(np.float64) - factual, axis=1)
        gaps[~accepted] = np.inf
        assert answer.columns["training_row"] == int(np.argmin(gaps))
        assert np.array_equal(answer.point, toy_task.train_x[np.argmin(gaps)])


FIXED = {"trade_off": 1.0, "learning_rate": 0.01, "max_steps": 400}


def reference_wachter(task: GenerationTask, factual: np.ndarray, weight: float, cap: int) -> tuple[np.ndarray, int]:
    """Wachter by torch's own autograd and optimiser, one request."""
    import torch

    pairs = zip(task.model.weights, task.model.biases, strict=True)
    (*hidden, last), start = [tuple(map(torch.tensor, pair)) for pair in pairs], torch.tensor(factual).float()
    x = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([x], lr=0.01, amsgrad=True)
    step = 0
    while step < cap:
        step += 1
        h = x
        for w, b in hidden:
            h = torch.relu(w @ h + b)
        p = torch.sigmoid(last[0][0] @ h + last[1][0])
        loss = weight * torch.nn.functional.binary_cross_entropy(p, torch.ones(())) + (x - start).abs().sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if p.item() - 0.001 >= 0.5:
            break
    return x.detach().numpy(), step


@pytest.mark.parametrize(("protocol", "weight"), [("paper", 4.0), ("corrected", 1.0)])
def test_wachter_follows_autograd(
    protocol: str, weight: float, toy_task: GenerationTask, toy_factuals: np.ndarray
) -> None:
    task = replace(toy_task, protocol=protocol)
    for factual, answer in zip(toy_factuals[:8], answers("wachter", task, toy_factuals[:8], **FIXED), strict=True):
        point, steps = reference_wachter(task, factual, weight, 400)
        assert answer.columns["steps"] == steps
        assert answer.columns["budget_hit"] == (steps == 400)
        assert answer.point == pytest.approx(point, abs=1e-4)


def test_wachter_at_its_cap_returns_the_current_point(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    entry = METHODS.get("wachter")
    prepared = entry.target(toy_task, entry.parse_options({"max_steps": 2}))
    table = generate(prepared, toy_task, toy_factuals[:4], range(4), range(4))
    assert table["budget_hit"].to_pylist() == [True] * 4
    assert table["status"].to_pylist() == ["base_invalid"] * 4
    assert all(point is not None for point in table["counterfactual"].to_pylist())
    assert table["distance"].null_count == 4


def test_wachter_refuses_a_favourable_factual(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    good = toy_task.train_x[toy_task.model.favourable(toy_task.train_x)][:1].astype(np.float64)
    first, second = answers("wachter", toy_task, np.concatenate([good, toy_factuals[:1]]))
    assert (first.point, first.status) == (None, "not_found")
    assert second.point is not None
