"""The training loop that all paradigms share.

Common recipe (GECOBench, training): cross entropy, Adam, a learning rate that rises linearly over a tenth of all steps
and then falls linearly to zero, no early stopping; ``best`` is the epoch with the strictly lowest validation loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from geco_ray.errors import GecoRayError

CLIP_NORM = 1.0
EVALUATION_BATCH = 256


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one part on the device: ``inputs`` share the first axis n with ``targets`` (n,)."""

    inputs: tuple[Tensor, ...]
    targets: Tensor

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, index: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """The rows of ``index``."""
        return tuple(tensor[index] for tensor in self.inputs), self.targets[index]


@dataclass(frozen=True)
class Recipe:
    """How to train; the switches are those of :class:`Protocol`."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    epsilon: float
    accumulate: bool
    clip_before_step: bool
    mean_over_rows: bool
    warmup: float = 0.1


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """One epoch, counted from 1. The validation loss is the number that decides ``best``.

    A classifier that is not trained has the one epoch 0, without losses.
    """

    epoch: int
    train_loss: float | None
    validation_loss: float | None
    validation_accuracy: float


@dataclass(frozen=True, eq=False)
class Progress:
    """Where a training stands after an epoch.

    Attributes:
        epoch: the last one that ended, from 1. best_epoch, best_loss: of the lowest validation loss so far.
        best: the trained parameters then. history: one record per epoch.
    """

    epoch: int
    best_epoch: int
    best_loss: float
    best: Sequence[Tensor]
    history: tuple[EpochRecord, ...]


@dataclass(frozen=True, eq=False)
class Moving:
    """All that changes from step to step, and what tells this training from others.

    Attributes:
        parameters: those that are trained. optimizer: theirs, with one state per parameter.
        generators: all from which the training draws, in a fixed order. identity: JSON values.
    """

    parameters: Sequence[Tensor]
    optimizer: torch.optim.Adam
    generators: Sequence[torch.Generator]
    identity: Mapping[str, Any]


class Keeper(Protocol):
    """Keeps a checkpoint of one training; see :mod:`geco_ray.geco.checkpoints`."""

    def restore(self, moving: Moving) -> Progress | None:
        """Put a training back to where its checkpoint says it was; None, and nothing is changed, without one."""

    def save(self, progress: Progress, moving: Moving) -> None:
        """Replace the checkpoint, in one step."""


def warmup_then_decay(step: int, total: int, warmup: float) -> float:
    """Factor of the learning rate at ``step`` (from 0): linear from 0 to 1 over the warm-up, then linear to 0."""
    rising = int(warmup * total)
    if step < rising:
        return step / max(1, rising)
    return max(0.0, (total - step) / max(1, total - rising))


Forward = Callable[[tuple[Tensor, ...], bool], Tensor]
"""Logits of a batch of inputs; the flag is True in training steps."""


def fit(
    parameters: Sequence[torch.nn.Parameter],
    forward: Forward,
    train: Part,
    validation: Part,
    recipe: Recipe,
    generator: torch.Generator,
    *,
    others: Sequence[torch.Generator] = (),
    keeper: Keeper | None = None,
    on_epoch: Callable[[EpochRecord], None] | None = None,
) -> tuple[int, tuple[EpochRecord, ...]]:
    """Train ``parameters`` in place and leave them at the best epoch.

    Args:
        train, validation: the parts, on the parameters' device.
        generator: CPU generator of the shuffles. others: generators that ``forward`` draws from, such as dropout's.
        keeper: keeps a checkpoint after each epoch; from one that is there the training goes on, to the same result.
        on_epoch: told of each epoch that ends.

    Returns:
        the best epoch, from 1, and one record per epoch.

    Raises:
        GecoRayError: the loss of a step is not finite, or no epoch had a finite validation loss.
        ValueError: a keeper for an accumulating gradient, which is no part of a checkpoint.
    """
    moving, progress = _begin(parameters, recipe, (generator, *others), (len(train), len(validation)), keeper)
    total = recipe.epochs * (steps := math.ceil(len(train) / recipe.batch_size))
    factors = (warmup_then_decay(step, total, recipe.warmup) for step in range(progress.epoch * steps, total))
    for epoch in range(progress.epoch + 1, recipe.epochs + 1):
        mean_loss = _train_epoch(epoch, parameters, forward, train, recipe, moving.optimizer, factors, generator)
        validated = _validate(forward, validation, recipe, generator)
        progress = _after(progress, record := EpochRecord(epoch, mean_loss, *validated), validated[0], parameters)
        if keeper is not None:
            keeper.save(progress, moving)
        if on_epoch is not None:
            on_epoch(record)
    return _end(progress, moving)


def _end(progress: Progress, moving: Moving) -> tuple[int, tuple[EpochRecord, ...]]:
    """Leave the parameters at the best epoch."""
    if progress.best_epoch == 0:
        raise GecoRayError("training diverged: no epoch had a finite validation loss")
    _copy(progress.best, moving.parameters)
    moving.optimizer.zero_grad()
    return progress.best_epoch, progress.history


def _begin(
    parameters: Sequence[torch.nn.Parameter],
    recipe: Recipe,
    generators: Sequence[torch.Generator],
    rows: tuple[int, int],
    keeper: Keeper | None,
) -> tuple[Moving, Progress]:
    """A fresh training, put to where its checkpoint says it was, if there is one."""
    if keeper is not None and recipe.accumulate:
        raise ValueError("an accumulating gradient is no part of a checkpoint")
    rate, decay = recipe.learning_rate, recipe.weight_decay
    optimizer = torch.optim.Adam(parameters, lr=rate, eps=recipe.epsilon, weight_decay=decay, fused=True)
    # Another kind of device draws other numbers, from generators of another kind.
    devices = [parameters[0].device.type, *(generator.device.type for generator in generators)]
    moving = Moving(parameters, optimizer, generators, asdict(recipe) | {"rows": list(rows), "devices": devices})
    best = [parameter.detach().clone() for parameter in parameters]
    found = keeper.restore(moving) if keeper is not None else None
    return moving, found or Progress(0, 0, math.inf, best, ())


def _after(before: Progress, record: EpochRecord, loss: float, parameters: Sequence[Tensor]) -> Progress:
    """Where a training stands after one more epoch; a better one's parameters replace the best in place."""
    history = (*before.history, record)
    if not loss < before.best_loss:
        return replace(before, epoch=record.epoch, history=history)
    _copy(parameters, before.best)
    return Progress(record.epoch, record.epoch, loss, before.best, history)


def _train_epoch(
    epoch: int,
    parameters: Sequence[torch.nn.Parameter],
    forward: Forward,
    train: Part,
    recipe: Recipe,
    optimizer: torch.optim.Adam,
    factors: Iterator[float],
    generator: torch.Generator,
) -> float:
    """One pass over the rows in a fresh order; the mean loss over rows. ``factors`` are of the learning rate."""
    losses = []
    batches = _batches(len(train), recipe.batch_size, generator, train.targets.device)
    for step, index in enumerate(batches, start=1):
        loss = _step(parameters, forward, train.take(index), recipe, optimizer, next(factors))
        if not math.isfinite(loss):
            raise GecoRayError(
                f"training diverged: the loss is {float(loss)} at step {step} of {len(batches)} of epoch {epoch} "
                f"(learning rate {optimizer.param_groups[0]['lr']:g}, at its peak {recipe.learning_rate:g}). "
                "Try a lower learning rate."
            )
        losses.append(loss * len(index))
    return float(torch.stack(losses).sum()) / len(train)


def _copy(source: Sequence[Tensor], target: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for old, new in zip(target, source, strict=True):
            old.copy_(new)


def accuracy(forward: Forward, part: Part) -> float:
    """Share of rows whose largest logit is the target's."""
    return int((all_logits(forward, part).argmax(1) == part.targets).sum()) / len(part)


def all_logits(forward: Forward, part: Part) -> Tensor:
    """The logits of all rows, (n, labels), in their order."""
    with torch.no_grad():
        chunks = _chunks(torch.arange(len(part), device=part.targets.device), EVALUATION_BATCH)
        return torch.cat([forward(part.take(index)[0], False) for index in chunks])


def _step(
    parameters: Sequence[torch.nn.Parameter],
    forward: Forward,
    batch: tuple[tuple[Tensor, ...], Tensor],
    recipe: Recipe,
    optimizer: torch.optim.Adam,
    factor: float,
) -> Tensor:
    if not recipe.accumulate:
        optimizer.zero_grad()
    inputs, targets = batch
    loss = functional.cross_entropy(forward(inputs, True), targets)
    loss.backward()  # type: ignore[no-untyped-call]
    if recipe.clip_before_step:
        torch.nn.utils.clip_grad_norm_(parameters, CLIP_NORM)
    optimizer.param_groups[0]["lr"] = recipe.learning_rate * factor
    optimizer.step()
    if not recipe.clip_before_step:
        # Late, as published: it bounds what an accumulating gradient remembers, and does nothing to a fresh one.
        torch.nn.utils.clip_grad_norm_(parameters, CLIP_NORM)
    return loss.detach()


def _validate(forward: Forward, part: Part, recipe: Recipe, generator: torch.Generator) -> tuple[float, float]:
    losses, hits = [], []
    with torch.no_grad():
        for index in _batches(len(part), recipe.batch_size, generator, part.targets.device):
            inputs, targets = part.take(index)
            logits = forward(inputs, False)
            weight = len(index) / len(part) if recipe.mean_over_rows else 1.0
            losses.append(functional.cross_entropy(logits, targets) * weight)
            hits.append((logits.argmax(1) == targets).sum())
    return float(torch.stack(losses).sum()), int(torch.stack(hits).sum()) / len(part)


def _batches(n: int, size: int, generator: torch.Generator, device: torch.device) -> Sequence[Tensor]:
    return _chunks(torch.randperm(n, generator=generator).to(device), size)


def _chunks(index: Tensor, size: int) -> list[Tensor]:
    return [index[first : first + size] for first in range(0, len(index), size)]
