"""What a trained classifier is, and what all paradigms do to get one: split, fit, evaluate, keep.

Repetition k uses the seed 43532791 + k (GECOBench, training).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from geco_ray.geco.classifiers import Classifier
from geco_ray.geco.fitting import EpochRecord, Forward, Part, Recipe, accuracy, fit
from geco_ray.geco.paradigms.base import PARADIGMS, Paradigm, TrainingSetup
from geco_ray.geco.protocol import GecoProtocol
from geco_ray.registry import Options
from geco_ray.seeds import torch_stream

if TYPE_CHECKING:
    import pyarrow as pa

    from geco_ray.geco.encoders import EncoderSource
    from geco_ray.geco.rows import Row
    from geco_ray.geco.tokens import IntArray

GENERAL_SEED = 43_532_791
VALIDATION_SHARE = 0.2


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


@dataclass(frozen=True, eq=False)
class Trainee:
    """A fresh classifier of one repetition, and how to train it.

    Attributes:
        module: the classifier, on the device.
        parameters: those that are trained.
        parts: ``train``, ``validation`` and ``test``, on the device.
        forward: logits of a part's inputs.
        recipe: how.
    """

    module: Classifier
    parameters: Sequence[torch.nn.Parameter]
    parts: Mapping[str, Part]
    forward: Forward
    recipe: Recipe


def train_one(setup: TrainingSetup, paradigm: str, options: Options, seed: int, trainee: Trainee) -> TrainedClassifier:
    """Train ``trainee`` in place and keep it at its best epoch. Shuffles come from a stream of paradigm and seed."""
    generator = torch_stream("geco", "train", paradigm, seed)
    parts = trainee.parts
    best, history = fit(
        trainee.parameters, trainee.forward, parts["train"], parts["validation"], trainee.recipe, generator
    )
    trainee.module.eval().requires_grad_(False)
    kind: type[Paradigm] = PARADIGMS.get(paradigm).target
    task = setup.tokens.task
    return TrainedClassifier(
        dataset=task.name,
        task_fingerprint=task.fingerprint,
        paradigm=paradigm,
        options=options,
        protocol=setup.protocol.name,
        seed=seed,
        depends_on=kind.fingerprint(setup.source),
        labels=task.labels,
        best_epoch=best,
        history=history,
        accuracies=Accuracies(**{name: accuracy(trainee.forward, part) for name, part in parts.items()}),
        module=trainee.module,
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
