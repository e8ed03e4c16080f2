"""A trained classifier, as data: what made it, how it went, its tensors as bytes. It knows no paradigm."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geco_ray.registry import Options

if TYPE_CHECKING:
    import pyarrow as pa

    from geco_ray.geco.classifiers import Classifier
    from geco_ray.geco.fitting import EpochRecord
    from geco_ray.geco.rows import Row
    from geco_ray.geco.tokens import IntArray

FloatArray = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Accuracies:
    """Share of rows classified right at the best epoch."""

    train: float
    validation: float
    test: float


@dataclass(frozen=True, eq=False)
class PredictedRows:
    """What a classifier says of each row of a test split, in the split's order.

    Attributes:
        rows: the rows.
        predicted: class numbers, (n,); -1 where a rule predicts none.
        probabilities: of each class, (n, labels); None where a rule decides that gives no class a probability.
    """

    rows: Sequence[Row]
    predicted: IntArray
    probabilities: FloatArray | None

    def values(self) -> list[dict[str, object]]:
        """One mapping per row, as :func:`history_schema` has them."""
        none = [None] * len(self.rows)
        probabilities = none if self.probabilities is None else self.probabilities.tolist()
        found = zip(self.rows, self.predicted.tolist(), probabilities, strict=True)
        return [
            {"row": number, "sentence_idx": row.sentence_idx, "target": row.target, "predicted": predicted,
             "probabilities": shares}
            for number, (row, predicted, shares) in enumerate(found)
        ]  # fmt: skip


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
        test_rows: what it says of the test split; None for one that was loaded.
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
    test_rows: PredictedRows | None = None

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

    def history_table(self) -> pa.Table:
        """One row per epoch: losses, validation accuracy, ``best``; at the best epoch only accuracies and test rows."""
        import pyarrow as pa

        rows = []
        for record in self.history:
            best = record.epoch == self.best_epoch
            at_best: dict[str, object] = {f"{name}_accuracy_at_best": v for name, v in asdict(self.accuracies).items()}
            at_best["test_rows_at_best"] = self.test_rows and self.test_rows.values()
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


def model_digest(classifier: Classifier, depends_on: str) -> str:
    """16 hex digits of what a classifier is: its trained tensors, and the encoder or tokenizer that it depends on."""
    from safetensors.torch import save

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in classifier.trained_state().items()}
    return hashlib.sha256(depends_on.encode() + b"\n" + bytes(save(tensors))).hexdigest()[:16]


def digest_of_bytes(data: bytes) -> str:
    """:func:`model_digest` of what :meth:`TrainedClassifier.to_bytes` wrote."""
    from safetensors.torch import load, save

    size = int.from_bytes(data[:8], "little")
    fields = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["geco_ray"])
    return hashlib.sha256(fields["depends_on"].encode() + b"\n" + bytes(save(load(data)))).hexdigest()[:16]


def history_schema() -> pa.Schema:
    """Columns of :meth:`TrainedClassifier.history_table`."""
    import pyarrow as pa

    floats = ("train_loss", "validation_loss", "validation_accuracy")
    at_best = ("train_accuracy_at_best", "validation_accuracy_at_best", "test_accuracy_at_best")
    test_row = [(name, pa.int32()) for name in ("row", "sentence_idx", "target", "predicted")]
    test_rows = pa.list_(pa.struct([*test_row, ("probabilities", pa.list_(pa.float32()))]))
    return pa.schema(
        [
            ("epoch", pa.int32()),
            *((name, pa.float64()) for name in floats),
            ("best", pa.bool_()),
            *((name, pa.float64()) for name in at_best),
            ("test_rows_at_best", test_rows),
        ]
    )
