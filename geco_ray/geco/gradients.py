"""Gradients of the explained scalar with respect to embeddings, batched over sentences of equal length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from geco_ray.geco.attribution.base import AttributionInputs
from geco_ray.geco.classifiers import Classifier
from geco_ray.geco.protocol import Protocol

FIXED_ROWS = 8

TokenArrays = list[npt.NDArray[np.floating]]


@dataclass(frozen=True, eq=False)
class GradientSummary:
    """Per row and token, sums over the embedding's dimensions of the gradient g at the embedding x.

    Attributes:
        absolute: sum of ``|g|``.
        times_input: sum of ``x * g``.
        plain: sum of ``g``.
    """

    absolute: TokenArrays
    times_input: TokenArrays
    plain: TokenArrays


def gradient_point(classifier: Classifier, ids: Tensor, protocol: Protocol) -> Tensor:
    """Where gradient methods attribute: word embeddings, or (``twice``) the output of the embedding module.

    Either is then handed to the classifier as word embeddings, so the latter is embedded a second time, as published.
    """
    words = classifier.word_vectors(ids)
    return words if protocol.embedding_path == "once" else classifier.embed(words)


def summarize_gradients(inputs: AttributionInputs) -> GradientSummary:
    """One forward and backward pass per sentence for the logit of its explained class.

    ``x * g`` nearly cancels over a token's dimensions, as a normalisation follows the embedding; so rounding that
    depends on the batch would show, and batches have a fixed shape.
    """
    empty: list[TokenArrays] = [[np.zeros(0)] * len(inputs.rows) for _ in range(3)]
    for batch in inputs.batches(rows=FIXED_ROWS):
        with torch.no_grad():
            point = gradient_point(inputs.classifier, batch.ids, inputs.protocol)
        point.requires_grad_(True)
        logits = inputs.classifier.logits_from_words(point, None)
        (gradient,) = torch.autograd.grad(pick(logits, batch.classes).sum(), point)
        point = point.detach()
        sums = (gradient.abs().sum(2), (point * gradient).sum(2), gradient.sum(2))
        for kind, values in zip(empty, sums, strict=True):
            for index, array in zip(batch.positions, values[: len(batch.positions)].cpu().numpy(), strict=True):
                kind[index] = array
    return GradientSummary(*empty)


def ig_point(classifier: Classifier, ids: Tensor, protocol: Protocol) -> Tensor:
    """Where Integrated Gradients interpolates."""
    words = classifier.word_vectors(ids)
    return words if protocol.ig_layer == "word_embeddings" else classifier.embed(words)


def ig_scalar(classifier: Classifier, point: Tensor, classes: Tensor, protocol: Protocol) -> Tensor:
    """What Integrated Gradients explains at ``point``: logit or probability of each row's class, (n,)."""
    if protocol.ig_layer == "word_embeddings":
        logits = classifier.logits_from_words(point, None)
    else:
        logits = classifier.logits_from_embedded(point, None)
    return pick(logits if protocol.ig_scalar == "logit" else logits.softmax(1), classes)


def pick(scores: Tensor, classes: Tensor) -> Tensor:
    """The score of each row's class, (n,)."""
    return scores.gather(1, classes[:, None]).squeeze(1)
