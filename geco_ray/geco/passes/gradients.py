"""Gradients of the explained scalar with respect to embeddings, in batches of fixed shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from geco_ray.geco.attribution.base import AttributionInputs, Scalar
from geco_ray.geco.classifiers import Classifier
from geco_ray.geco.protocol import Protocol

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


ROUNDING = 1e-4
ROUNDING_NOTE = (
    "Its sums over the embedding's dimensions are rounding noise here: a layer normalisation follows the embedding,"
    " and a gradient through it adds up to zero."
)


def is_rounding(sums: Sequence[npt.NDArray[np.floating]], sizes: Sequence[npt.NDArray[np.floating]]) -> bool:
    """Whether the signed ``sums`` vanish beside the sums of absolute values ``sizes``, in every row."""
    return bool(sums) and all(
        np.abs(total).max() <= ROUNDING * size.max() for total, size in zip(sums, sizes, strict=True)
    )


def word_vectors(classifier: Classifier, ids: Tensor) -> Tensor:
    """The word embeddings of ``ids``, (n, L, d); zero where an id is :data:`ZERO_ID`."""
    absent = ids < 0
    vectors = classifier.word_vectors(torch.where(absent, ids[:, :1], ids))
    return vectors.masked_fill(absent[..., None], 0.0)


def gradient_point(classifier: Classifier, ids: Tensor, protocol: Protocol) -> Tensor:
    """Where gradient methods attribute: word embeddings, or (``twice``) the output of the embedding module.

    Either is then handed to the classifier as word embeddings, so the latter is embedded a second time, as published.
    """
    words = word_vectors(classifier, ids)
    return words if protocol.embedding_path == "once" else classifier.embed(words)


def summarize_gradients(inputs: AttributionInputs) -> GradientSummary:
    """One forward and backward pass per sentence for the logit (or probability) of its explained class.

    ``x * g`` nearly cancels over a token's dimensions, as a normalisation follows the embedding; so rounding that
    depends on the batch would show, and batches have a fixed shape. The forward pass also tells the predicted class
    where it is the classifier's own, so that nobody repeats it.
    """
    classifier, protocol = inputs.classifier, inputs.protocol
    empty: list[TokenArrays] = [[np.zeros(0)] * len(inputs.rows) for _ in range(3)]
    own = protocol.embedding_path == "once" and classifier.decides_by_logits
    own = own and not classifier.padding_matters and "predicted" not in inputs.known
    predicted = np.zeros(len(inputs.rows), np.int64)
    for batch in inputs.batches():
        with torch.no_grad():
            point = gradient_point(classifier, batch.ids, protocol)
        point.requires_grad_(True)
        logits = classifier.logits_from_words(point, batch.mask)
        best = logits.argmax(1)
        classes = best if own and inputs.explained_class == "predicted" else batch.classes
        scalar = explained(classifier, logits, classes, inputs.scalar or "logit")
        (gradient,) = torch.autograd.grad(scalar.sum(), point)
        point = point.detach()
        for kind, values in zip(
            empty, (gradient.abs().sum(2), (point * gradient).sum(2), gradient.sum(2)), strict=True
        ):
            for position, array in batch.sentences(values):
                kind[position] = array
        predicted[batch.positions] = best[: len(batch.positions)].cpu().numpy()
    if own:
        inputs.known["predicted"] = predicted
    return GradientSummary(*empty)


def explained(classifier: Classifier, logits: Tensor, classes: Tensor, scalar: Scalar) -> Tensor:
    """The explained scalar: logit or probability of each row's class, (n,)."""
    scores = logits if scalar == "logit" else classifier.probabilities(logits)
    return scores.gather(1, classes[:, None]).squeeze(1)
