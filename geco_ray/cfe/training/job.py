"""What training one of the benchmark's networks means: data, start, settings, and the stopping rule.

Full batch, float32, mean binary cross-entropy of sigmoid outputs, early stopping on the validation part
("Robust to Which Model Change?", set-up: Adam at 1e-3, patience 30).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from geco_ray.cfe.mlp import HIDDEN, Mlp

if TYPE_CHECKING:
    import numpy.typing as npt

    from geco_ray.cfe.data.datasets import Dataset

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


def base_job(pool: Pool, seed: int, hidden: Sequence[int] = HIDDEN) -> TrainingJob:
    """The job of a base model: the training part as it is, torch's default initialisation under ``seed``."""
    initial = Mlp.initial(pool.x.shape[1], hidden, seed=seed)
    return TrainingJob(initial, np.arange(len(pool.train_y), dtype=np.int64), pool.train_y)


def resampled(job: TrainingJob, seed: int) -> TrainingJob:
    """The job on as many of its rows drawn with replacement from ``default_rng(seed)``."""
    drawn = np.random.default_rng(seed).integers(0, len(job.rows), size=len(job.rows))
    return TrainingJob(job.initial, job.rows[drawn], job.labels[drawn], job.settings)
