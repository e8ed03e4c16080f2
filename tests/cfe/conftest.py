"""A small task that every counterfactual method can work on in moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from geco_ray.cfe.methods.base import GenerationTask
from geco_ray.cfe.mlp import Mlp

FEATURES = 4


def frozen(array: np.ndarray) -> np.ndarray:
    """The array, with any attempt to change it raising."""
    array.flags.writeable = False
    return array


def fit(x: np.ndarray, y: np.ndarray, seed: int = 0, hidden: tuple[int, ...] = (32, 32)) -> Mlp:
    """A network trained for a moment, so that its surface has slopes to walk on."""
    import torch

    net = Mlp.initial(x.shape[1], hidden, seed=seed)
    pairs = zip(net.weights, net.biases, strict=True)
    values = [torch.tensor(a, requires_grad=True) for pair in pairs for a in pair]
    rows, labels = torch.tensor(x), torch.tensor(y, dtype=torch.float32)
    optimiser = torch.optim.Adam(values, lr=0.01)
    for _ in range(60):
        h = rows
        for i in range(0, len(values), 2):
            h = torch.nn.functional.linear(h, values[i], values[i + 1])
            h = torch.relu(h) if i < len(values) - 2 else h
        loss = torch.nn.functional.binary_cross_entropy_with_logits(h[:, 0], labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    arrays = [v.detach().numpy().copy() for v in values]
    return Mlp(tuple(arrays[0::2]), tuple(arrays[1::2]))


def make_rows(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping clouds, float64 (n, 4), and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    centres = np.array([[-0.6, -0.4, 0.0, -0.5], [0.6, 0.4, 0.0, 0.5]])
    return rng.standard_normal((n, FEATURES)) + centres[y], y


def make_task(x: np.ndarray, y: np.ndarray, model: Mlp, protocol: str = "paper") -> GenerationTask:
    """A task over these rows; its update pool and validation part are small and fixed."""
    update, val = make_rows(8, 40), make_rows(9, 40)
    return GenerationTask(
        dataset="toy",
        base_seed=2026,
        protocol=protocol,
        seeding="paper",
        model=model,
        train_x=frozen(x.astype(np.float32)),
        train_y=frozen(y.astype(np.int64)),
        update_x=frozen(update[0].astype(np.float32)),
        update_y=frozen(update[1].astype(np.int64)),
        val_x=frozen(val[0].astype(np.float32)),
        val_y=frozen(val[1].astype(np.int64)),
    )


@pytest.fixture(scope="session")
def toy_model() -> Mlp:
    x, y = make_rows(7, 120)
    return fit(x.astype(np.float32), y)


@pytest.fixture(scope="session")
def fit_again() -> Callable[[int], Mlp]:
    """The toy model's training from another initialisation, by its seed: a changed model."""
    x, y = make_rows(7, 120)
    return lambda seed: fit(x.astype(np.float32), y, seed)


@pytest.fixture
def toy_task(toy_model: Mlp) -> GenerationTask:
    """120 training rows of 4 features under ``paper``; its arrays refuse to be written."""
    return make_task(*make_rows(7, 120), toy_model)


@pytest.fixture
def one_row_task(toy_task: GenerationTask) -> GenerationTask:
    """The same model with a training set of one favourable row."""
    row = int(np.flatnonzero(toy_task.model.favourable(toy_task.train_x))[0])
    return replace(toy_task, train_x=toy_task.train_x[[row]], train_y=toy_task.train_y[[row]])


@pytest.fixture
def one_class_task(toy_task: GenerationTask) -> GenerationTask:
    """The same model with training rows that it calls adverse, all of them."""
    rows = np.flatnonzero(~toy_task.model.favourable(toy_task.train_x))
    return replace(toy_task, train_x=toy_task.train_x[rows], train_y=np.zeros(len(rows), dtype=np.int64))


@pytest.fixture
def hopeless_task(toy_task: GenerationTask) -> GenerationTask:
    """A base model that calls nobody favourable."""
    model = toy_task.model
    biases = (*model.biases[:-1], np.full(1, -1e4, dtype=np.float32))
    return replace(toy_task, model=Mlp(tuple(w.copy() for w in model.weights), biases))


@pytest.fixture(scope="session")
def toy_factuals(toy_model: Mlp) -> np.ndarray:
    """70 rows that the model calls adverse, float64 (70, 4), not writeable."""
    x, _ = make_rows(11, 300)
    return frozen(x[~toy_model.favourable(x)][:70].copy())
