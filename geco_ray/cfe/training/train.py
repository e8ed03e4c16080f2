"""The plain trainer that defines the result, and the way into the stacked one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.training.job import BETAS, EPSILON, EarlyStopping, Pool, Trained, TrainingJob, TrainingSettings

if TYPE_CHECKING:
    import numpy.typing as npt
    import torch


def train_one(job: TrainingJob, pool: Pool, device: torch.device | str = "cpu") -> Trained:
    """Train one network with torch's own autograd, loss and optimizer: the reference for the stacked trainer.

    Raises:
        ValueError: the loss is not finite from the first epoch on.
    """
    import torch

    def tensor(array: npt.NDArray[np.generic]) -> torch.Tensor:
        return torch.tensor(array, dtype=torch.float32, device=device)

    x, y = tensor(pool.x[job.rows]), tensor(job.labels)
    val_x, val_y = tensor(pool.val_x), tensor(pool.val_y)
    net = _module(job.initial).to(device)
    optimizer = _optimizer(net, job.settings)
    loss_of = torch.nn.BCELoss()
    stopping = EarlyStopping(job.settings)
    best = {name: value.clone() for name, value in net.state_dict().items()}
    while not stopping.done:
        optimizer.zero_grad()
        loss_of(net(x).squeeze(1), y).backward()
        optimizer.step()
        with torch.no_grad():
            loss = float(loss_of(net(val_x).squeeze(1), val_y))
        if stopping.update(loss):
            best = {name: value.clone() for name, value in net.state_dict().items()}
    if not stopping.best_epoch:
        raise ValueError("training diverged: no epoch had a finite validation loss")
    arrays = [value.cpu().numpy().copy() for value in best.values()]
    return Trained(Mlp(tuple(arrays[0::2]), tuple(arrays[1::2])), stopping.epoch, stopping.best_epoch, stopping.best)


def train_stacked(
    jobs: Sequence[TrainingJob], pool: Pool, device: torch.device | str = "cpu", *, cap: int = 32
) -> list[Trained]:
    """Train many networks at once, with the results of :func:`train_one` up to float summation order.

    Jobs of one shape and optimizer share a stack of at most ``cap`` networks; each has its own rows, labels, start,
    learning rate, weight decay and stopping. Results come in the order of ``jobs``.
    """
    from geco_ray.cfe.training.stack import train_group

    results: dict[int, Trained] = {}
    for group in group_jobs(jobs, cap):
        trained = train_group([jobs[index] for index in group], pool, device)
        results.update(zip(group, trained, strict=True))
    return [results[index] for index in range(len(jobs))]


def group_jobs(jobs: Sequence[TrainingJob], cap: int) -> list[list[int]]:
    """Indices of jobs that can share a stack: one kind of optimizer, the same widths and number of rows after padding.

    Padding depends on the job alone; so do its float sums, and its bits do not depend on its company.
    """
    from geco_ray.cfe.training.layout import common_widths, padded

    groups: dict[tuple[object, ...], list[int]] = {}
    for index, job in enumerate(jobs):
        s = job.settings
        rows = padded(len(np.unique(job.rows * 2 + job.labels)))
        groups.setdefault((common_widths(job.initial.hidden), s.optimizer, s.momentum, rows), []).append(index)
    return [group[low : low + cap] for group in groups.values() for low in range(0, len(group), cap)]


def _module(model: Mlp) -> torch.nn.Sequential:
    import torch

    layers: list[torch.nn.Module] = []
    for weight, bias in zip(model.weights, model.biases, strict=True):
        # Made empty on purpose: drawing initial weights would move torch's global generator.
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0], device="meta").to_empty(device="cpu")
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(weight))
            linear.bias.copy_(torch.tensor(bias))
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1], torch.nn.Sigmoid())


def _optimizer(net: torch.nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    import torch

    if settings.optimizer == "adam":
        return torch.optim.Adam(
            net.parameters(),
            lr=settings.learning_rate,
            betas=BETAS,
            eps=EPSILON,
            weight_decay=settings.weight_decay,
            foreach=False,
        )
    return torch.optim.SGD(
        net.parameters(),
        lr=settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        foreach=False,
    )
