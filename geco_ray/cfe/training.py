"""Training of the benchmark's networks: the plain trainer that defines the result, and the way into the stacked one.

Full batch, float32, mean binary cross-entropy of sigmoid outputs, early stopping on the validation part
("Robust to Which Model Change?", set-up: Adam at 1e-3, patience 30).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from geco_ray.cfe.classifier import HIDDEN, Mlp

if TYPE_CHECKING:
    import numpy.typing as npt
    import torch

    from geco_ray.cfe.datasets import Dataset

BETAS = (0.9, 0.999)
EPSILON = 1e-8


@dataclass(frozen=True)
class TrainingSettings:
    """Optimizer and stopping rule; the defaults are those of the base models.

    After each update the validation loss counts as better only if it falls below the best one by more than
    ``min_delta``; training ends after ``patience`` updates in a row that are not better, or after ``epochs``.
    The weights of the best epoch are returned. ``weight_decay`` is the L2 kind; ``momentum`` is for SGD only.
    """

    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    momentum: float = 0.0
    epochs: int = 300
    patience: int = 30
    min_delta: float = 1e-6


@dataclass(frozen=True, eq=False)
class Pool:
    """The data of base and changed models: train, update pool and validation part; x float32 (., d), y int64 (.,).

    ``x`` holds the train rows at 0..n-1 and the update rows at n..n+u-1; the validation part serves early stopping
    only, and is the same for every model.
    """

    x: npt.NDArray[np.float32]
    train_y: npt.NDArray[np.int64]
    update_y: npt.NDArray[np.int64]
    val_x: npt.NDArray[np.float32]
    val_y: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.x) != len(self.train_y) + len(self.update_y) or len(self.val_x) != len(self.val_y):
            raise ValueError("rows and labels differ in number")

    @staticmethod
    def of(dataset: Dataset) -> Pool:
        """The training view of a data set."""
        x = np.concatenate([dataset.train.x, dataset.update.x]).astype(np.float32)
        val_x = dataset.val.x.astype(np.float32)
        return Pool(x, dataset.train.y, dataset.update.y, val_x, dataset.val.y)


@dataclass(frozen=True, eq=False)
class TrainingJob:
    """One network to train: where it starts, which rows of the pool (repeats allowed) with which labels, and how."""

    initial: Mlp
    rows: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    settings: TrainingSettings = TrainingSettings()

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.labels) or not len(self.rows):
            raise ValueError(f"{len(self.rows)} rows and {len(self.labels)} labels")


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network; epochs count from 1, ``best_loss`` is the validation loss of ``best_epoch``."""

    model: Mlp
    epochs: int
    best_epoch: int
    best_loss: float


class EarlyStopping:
    """The stopping rule for one network."""

    def __init__(self, settings: TrainingSettings) -> None:
        self.settings = settings
        self.best, self.best_epoch, self.epoch, self.stale = float("inf"), 0, 0, 0

    def update(self, loss: float) -> bool:
        """Take the validation loss after one more epoch; true if it is the best so far (the weights are to be kept)."""
        self.epoch += 1
        better = loss < self.best - self.settings.min_delta
        if better:
            self.best, self.best_epoch, self.stale = loss, self.epoch, 0
        else:
            self.stale += 1
        return better

    @property
    def done(self) -> bool:
        """Whether training ends here."""
        return self.stale >= self.settings.patience or self.epoch >= self.settings.epochs


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
    from geco_ray.cfe.stack import train_group

    results: dict[int, Trained] = {}
    for group in group_jobs(jobs, cap):
        trained = train_group([jobs[index] for index in group], pool, device)
        results.update(zip(group, trained, strict=True))
    return [results[index] for index in range(len(jobs))]


def group_jobs(jobs: Sequence[TrainingJob], cap: int) -> list[list[int]]:
    """Indices of jobs that can share a stack: one kind of optimizer, the same widths and number of rows after padding.

    Padding depends on the job alone; so do its float sums, and its bits do not depend on its company.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for index, job in enumerate(jobs):
        s = job.settings
        rows = padded(len(np.unique(job.rows * 2 + job.labels)))
        groups.setdefault((common_widths(job.initial.hidden), s.optimizer, s.momentum, rows), []).append(index)
    return [group[low : low + cap] for group in groups.values() for low in range(0, len(group), cap)]


def common_widths(hidden: Sequence[int]) -> tuple[int, ...]:
    """Hidden widths filled up to powers of two from 16, so that small networks of several shapes share a stack."""
    return tuple(max(16, 1 << (width - 1).bit_length()) for width in hidden)


def padded(rows: int) -> int:
    """Number of rows with padding: full cache lines (32 rows) for the products, steps of about 1/16 to share stacks."""
    step = max(32, 1 << max(0, rows.bit_length() - 5))
    return -(-rows // step) * step


def base_job(pool: Pool, seed: int, hidden: Sequence[int] = HIDDEN) -> TrainingJob:
    """The job of a base model: the training part as it is, torch's default initialisation under ``seed``."""
    initial = Mlp.initial(pool.x.shape[1], hidden, seed=seed)
    return TrainingJob(initial, np.arange(len(pool.train_y), dtype=np.int64), pool.train_y)


def resampled(job: TrainingJob, seed: int) -> TrainingJob:
    """The job on as many of its rows drawn with replacement from ``default_rng(seed)``."""
    drawn = np.random.default_rng(seed).integers(0, len(job.rows), size=len(job.rows))
    return TrainingJob(job.initial, job.rows[drawn], job.labels[drawn], job.settings)


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
