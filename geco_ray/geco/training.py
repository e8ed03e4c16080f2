"""What all paradigms do to get a trained classifier: split, fit, evaluate, keep; and how it is loaded again.

Repetition k uses the seed 43532791 + k (GECOBench, training).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from geco_ray.geco.classifiers import Classifier
from geco_ray.geco.fitting import EpochRecord, Forward, Part, Recipe, all_logits, fit
from geco_ray.geco.paradigms.base import PARADIGMS, Paradigm, TrainingSetup
from geco_ray.geco.protocol import Protocol, resolve_protocol
from geco_ray.geco.trained import Accuracies, PredictedRows, TrainedClassifier
from geco_ray.registry import Options
from geco_ray.seeds import torch_stream

if TYPE_CHECKING:
    from geco_ray.geco.encoders import EncoderSource
    from geco_ray.geco.rows import Row
    from geco_ray.geco.tokens import IntArray

GENERAL_SEED = 43_532_791
VALIDATION_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Trainee:
    """A fresh classifier of one repetition, and how to train it.

    Attributes:
        module: the classifier, on the device.
        parameters: those that are trained.
        parts: ``train``, ``validation`` and ``test``, on the device.
        forward: logits of a part's inputs.
        recipe: how.
        generators: those that ``forward`` draws from.
        keeps_checkpoints: whether the training takes minutes, so that its epochs are worth keeping.
    """

    module: Classifier
    parameters: Sequence[torch.nn.Parameter]
    parts: Mapping[str, Part]
    forward: Forward
    recipe: Recipe
    generators: tuple[torch.Generator, ...] = ()
    keeps_checkpoints: bool = False


def train_one(setup: TrainingSetup, paradigm: str, options: Options, seed: int, trainee: Trainee) -> TrainedClassifier:
    """Train ``trainee`` in place and keep it at its best epoch. Shuffles come from a stream of paradigm and seed."""
    generator = torch_stream("geco", "train", paradigm, seed)
    parts = trainee.parts
    best, history = fit(
        trainee.parameters,
        trainee.forward,
        parts["train"],
        parts["validation"],
        trainee.recipe,
        generator,
        others=trainee.generators,
        keeper=setup.keeper if trainee.keeps_checkpoints else None,
        on_epoch=setup.on_epoch,
    )
    trainee.module.eval().requires_grad_(False)
    logits = {name: all_logits(trainee.forward, part) for name, part in parts.items()}
    right = {name: (found.argmax(1) == parts[name].targets).sum().item() for name, found in logits.items()}
    test_rows = PredictedRows(
        setup.tokens.task.test, logits["test"].argmax(1).cpu().numpy(), logits["test"].softmax(1).cpu().numpy()
    )
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
        accuracies=Accuracies(**{name: count / len(parts[name]) for name, count in right.items()}),
        module=trainee.module,
        test_rows=test_rows,
    )


def model_facts(classifier: TrainedClassifier, kind: type[Paradigm]) -> dict[str, Any]:
    """What a table of models says of one: its classes, its parts by name, how many numbers it has and trains."""
    module = classifier.module
    return {
        "labels": list(classifier.labels),
        "trained": kind.trained_under(resolve_protocol(classifier.protocol)),
        "redrawn": kind.redrawn,
        "trained_parameters": sum(parameter.numel() for parameter in module.trained_parameters()),
        "parameters": sum(parameter.numel() for parameter in module.parameters()),
    }


def load_trained(data: bytes, source: EncoderSource, device: torch.device) -> TrainedClassifier:
    """Rebuild a classifier from :meth:`TrainedClassifier.to_bytes`; the encoder, if it needs one, is ``source``.

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


def validation_split(rows: Sequence[Row], protocol: Protocol) -> tuple[IntArray, IntArray]:
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
