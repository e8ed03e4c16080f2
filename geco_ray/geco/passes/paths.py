"""Gradients along the straight line from a baseline to a sentence: one engine for all methods that average them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from geco_ray.geco.attribution.base import AttributionInputs, FloatArray, Scalar
from geco_ray.geco.passes.gradients import explained, gradient_point, word_vectors


@dataclass(frozen=True, eq=False)
class Path:
    """A sentence's line: ``start`` and ``end`` (L, d), and the explained scalar at points (n, L, d) -> (n,)."""

    start: Tensor
    end: Tensor
    scalar: Callable[[Tensor], Tensor]
    points_per_pass: int

    def change(self) -> float:
        """The scalar at the end less the scalar at the start."""
        with torch.no_grad():
            ends = torch.split(torch.stack([self.start, self.end]), min(2, self.points_per_pass))
            start, end = torch.cat([self.scalar(part) for part in ends]).to(torch.float64).tolist()
        return float(end - start)

    def attribute(
        self, alphas: FloatArray, weights: FloatArray, noise: Callable[[int], FloatArray] | None = None
    ) -> FloatArray:
        """Per token, the sum over points of ``weight * (end - start) * gradient`` at ``start + alpha (end - start)``.

        A pass holds points of this sentence only, and how many follows from its length, the number of points and the
        token budget: so memory does not grow with the points, and a result is the same to the last bit in any company.

        Args:
            alphas: (n,), where on the line.
            weights: (n,).
            noise: called with a number of points, gives as many draws (number, L, d) to be added to the end.

        Returns:
            (L,).
        """
        passes = -(-len(alphas) // self.points_per_pass)
        total = torch.zeros(len(self.start), dtype=torch.float64, device=self.start.device)
        for part in np.array_split(np.arange(len(alphas)), passes):
            end = self.end[None]
            if noise is not None:
                end = end + torch.from_numpy(noise(len(part))).to(self.end)
            alpha = torch.from_numpy(alphas[part]).to(self.start)[:, None, None]
            point = (self.start + alpha * (end - self.start)).requires_grad_(True)
            (gradient,) = torch.autograd.grad(self.scalar(point).sum(), point)
            weight = torch.from_numpy(weights[part]).to(total)
            if noise is None:
                mean = torch.tensordot(weight, gradient.to(total), 1)
                total += (mean * (self.end - self.start)).sum(1)
            else:
                total += torch.einsum("n,nld,nld->l", weight, gradient.to(total), (end - self.start).to(total))
        return total.cpu().numpy()


def integration_path(inputs: AttributionInputs, position: int) -> Path:
    """The line of Integrated Gradients: over word embeddings, or over the output of the embedding module."""
    classifier, protocol = inputs.classifier, inputs.protocol
    scalar = inputs.scalar or protocol.ig_scalar
    if protocol.ig_layer == "word_embeddings":
        return _path(inputs, position, lambda ids: word_vectors(classifier, ids), classifier.logits_from_words, scalar)
    return _path(
        inputs,
        position,
        lambda ids: classifier.embed(word_vectors(classifier, ids)),
        classifier.logits_from_embedded,
        scalar,
    )


def gradient_path(inputs: AttributionInputs, position: int) -> Path:
    """The line of Gradient SHAP: where the gradient methods attribute."""
    classifier = inputs.classifier
    return _path(
        inputs,
        position,
        lambda ids: gradient_point(classifier, ids, inputs.protocol),
        classifier.logits_from_words,
        inputs.scalar or "logit",
    )


def _path(
    inputs: AttributionInputs,
    position: int,
    point: Callable[[Tensor], Tensor],
    logits: Callable[[Tensor, Tensor | None], Tensor],
    scalar: Scalar,
) -> Path:
    sentence = inputs.sentences[position]
    ids = torch.from_numpy(np.stack([inputs.baseline_ids(sentence), sentence.ids])).to(inputs.device)
    classes = torch.tensor([int(inputs.classes[position])], device=inputs.device)
    with torch.no_grad():
        start, end = point(ids)

    def value(points: Tensor) -> Tensor:
        return explained(inputs.classifier, logits(points, None), classes.expand(len(points)), scalar)

    return Path(start, end, value, max(1, inputs.token_budget // len(sentence)))
