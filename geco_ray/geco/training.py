"""The training loop that all paradigms share, the validation split, and what a trained classifier is.

Common recipe (GECOBench, training): cross entropy, Adam, a learning rate that rises linearly over a tenth of all
steps and then falls linearly to zero, no early stopping; ``best`` is the epoch with the strictly lowest validation
loss. Repetition k uses the seed 43532791 + k.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from geco_ray.errors import GecoRayError
from geco_ray.geco.classifiers import Classifier
from geco_ray.geco.paradigms.base import PARADIGMS
from geco_ray.geco.protocol import GecoProtocol
from geco_ray.registry import Options

if TYPE_CHECKING:
    import pyarrow as pa

    from geco_ray.geco.dataset import Row
    from geco_ray.geco.encoders import EncoderSource
    from geco_ray.geco.tokens import IntArray

GENERAL_SEED = 43_532_791
VALIDATION_SHARE = 0.2
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
    """How to train; the switches are those of :class:`GecoProtocol`."""

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
    """One epoch, counted from 1. The validation loss is the number that decides ``best``."""

    epoch: int
    train_loss: float
    validation_loss: float
    validation_accuracy: float


@dataclass(frozen=True)
class Accuracies:
    """Share of rows classified right at the best epoch."""

    train: float
    validation: float
    test: float


@dataclass(frozen=True, eq=False)
class TrainedClassifier:
    """A classifier at its best epoch, and what made it.

    Attributes:
        dataset, task_fingerprint: the task it was trained on.
        paradigm, options, protocol, seed: how; ``seed`` is the repetition k, None where nothing is drawn.
        depends_on: fingerprint of the encoder, or of the tokenizer where the paradigm uses no more of it.
        labels: class names.
        best_epoch: counted from 1.
        history: one record per epoch.
        accuracies: at the best epoch.
        module: the classifier, in eval mode.
    """

    dataset: str
    task_fingerprint: str
    paradigm: str
    options: Options
    protocol: str
    seed: int | None
    depends_on: str
    labels: tuple[str, ...]
    best_epoch: int
    history: tuple[EpochRecord, ...]
    accuracies: Accuracies
    module: Classifier

    def to_bytes(self) -> bytes:
        """Safetensors bytes: the trained tensors, and all other fields as one JSON text; equal for equal values."""
        from safetensors.torch import save

        fields = {name: getattr(self, name) for name in _PLAIN_FIELDS}
        fields["options"] = self.options.model_dump(mode="json")
        fields["history"] = [asdict(record) for record in self.history]
        fields["accuracies"] = asdict(self.accuracies)
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.module.trained_state().items()}
        # One key only: the order of several is not fixed by the format's writer.
        return bytes(save(tensors, metadata={"geco_ray": json.dumps(fields, sort_keys=True)}))

    @staticmethod
    def from_bytes(data: bytes, source: EncoderSource, device: torch.device) -> TrainedClassifier:
        """Rebuild from :meth:`to_bytes`; the encoder, where one is needed, comes from ``source``.

        Raises:
            ValueError: the bytes are not those of a classifier, or ``source`` is another encoder or tokenizer.
        """
        from safetensors.torch import load

        try:
            size = int.from_bytes(data[:8], "little")
            fields = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["geco_ray"])
        except (ValueError, KeyError, TypeError):
            raise ValueError("these bytes are not a stored classifier") from None
        entry = PARADIGMS.get(fields["paradigm"])
        paradigm = entry.target()
        if paradigm.fingerprint(source) != fields["depends_on"]:
            raise ValueError(f"the classifier was trained with another {paradigm.depends_on} than {source.name!r}")
        options = entry.parse_options(fields.pop("options"))
        module = paradigm.rebuild(load(data), options, fields["protocol"], source).to(device).eval()
        history = tuple(EpochRecord(**record) for record in fields.pop("history"))
        accuracies = Accuracies(**fields.pop("accuracies"))
        fields["labels"] = tuple(fields["labels"])
        return TrainedClassifier(options=options, history=history, accuracies=accuracies, module=module, **fields)

    def history_table(self) -> pa.Table:
        """One row per epoch: losses, validation accuracy, ``best``; the three accuracies at the best epoch only."""
        import pyarrow as pa

        rows = []
        for record in self.history:
            best = record.epoch == self.best_epoch
            at_best = {f"{name}_accuracy_at_best": value for name, value in asdict(self.accuracies).items()}
            rows.append({**asdict(record), "best": best, **(at_best if best else dict.fromkeys(at_best))})
        return pa.Table.from_pylist(rows, schema=history_schema())


_PLAIN_FIELDS = (
    "dataset",
    "task_fingerprint",
    "paradigm",
    "protocol",
    "seed",
    "depends_on",
    "labels",
    "best_epoch",
)


def history_schema() -> pa.Schema:
    """Columns of :meth:`TrainedClassifier.history_table`."""
    import pyarrow as pa

    floats = ("train_loss", "validation_loss", "validation_accuracy")
    at_best = ("train_accuracy_at_best", "validation_accuracy_at_best", "test_accuracy_at_best")
    return pa.schema(
        [
            ("epoch", pa.int32()),
            *((name, pa.float64()) for name in floats),
            ("best", pa.bool_()),
            *((name, pa.float64()) for name in at_best),
        ]
    )


def validation_split(rows: Sequence[Row], protocol: GecoProtocol) -> tuple[IntArray, IntArray]:
    """Indices of the training and the validation part of the train split.

    ``paper`` draws a fifth of the rows with scikit-learn's shuffled split and random state 43532791 (written out here;
    sizes 2060/516 and 3091/773). ``corrected`` draws a fifth of the source sentences the same way, so that no sentence
    has variants on both sides.
    """
    if protocol.validation_split == "row":
        return _shuffle_split(len(rows))
    groups = np.array([row.sentence_idx for row in rows])
    names = np.unique(groups)
    _, held_out = _shuffle_split(len(names))
    inside = np.isin(groups, names[held_out])
    return np.flatnonzero(~inside).astype(np.int64), np.flatnonzero(inside).astype(np.int64)


def _shuffle_split(n: int) -> tuple[IntArray, IntArray]:
    held_out = math.ceil(n * VALIDATION_SHARE)
    order = np.random.RandomState(GENERAL_SEED).permutation(n).astype(np.int64)
    return order[held_out:], order[:held_out]


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
) -> tuple[int, tuple[EpochRecord, ...]]:
    """Train ``parameters`` in place and leave them at the best epoch.

    Args:
        parameters: what is trained.
        forward: see :data:`Forward`.
        train, validation: the parts, on the parameters' device.
        recipe: how.
        generator: CPU generator of the shuffles.

    Returns:
        the best epoch, from 1, and one record per epoch.

    Raises:
        GecoRayError: no epoch had a finite validation loss.
    """
    optimizer = torch.optim.Adam(
        parameters, lr=recipe.learning_rate, eps=recipe.epsilon, weight_decay=recipe.weight_decay, fused=True
    )
    total = recipe.epochs * math.ceil(len(train) / recipe.batch_size)
    history: list[EpochRecord] = []
    best_loss, best_epoch, best = math.inf, 0, [parameter.detach().clone() for parameter in parameters]
    step = 0
    for epoch in range(1, recipe.epochs + 1):
        losses = []
        for index in _batches(len(train), recipe.batch_size, generator, train.targets.device):
            factor = warmup_then_decay(step, total, recipe.warmup)
            losses.append(_step(parameters, forward, train.take(index), recipe, optimizer, factor) * len(index))
            step += 1
        loss, accuracy = _validate(forward, validation, recipe, generator)
        mean_loss = float(torch.stack(losses).sum()) / len(train)
        history.append(EpochRecord(epoch, mean_loss, loss, accuracy))
        if loss < best_loss:
            best_loss, best_epoch = loss, epoch
            for kept, parameter in zip(best, parameters, strict=True):
                kept.copy_(parameter.detach())
    if best_epoch == 0:
        raise GecoRayError("training diverged: no epoch had a finite validation loss")
    with torch.no_grad():
        for kept, parameter in zip(best, parameters, strict=True):
            parameter.copy_(kept)
            parameter.grad = None
    return best_epoch, tuple(history)


def accuracy(forward: Forward, part: Part) -> float:
    """Share of rows whose largest logit is the target's."""
    hits = 0
    with torch.no_grad():
        for index in _chunks(torch.arange(len(part), device=part.targets.device), EVALUATION_BATCH):
            inputs, targets = part.take(index)
            hits += int((forward(inputs, False).argmax(1) == targets).sum())
    return hits / len(part)


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
