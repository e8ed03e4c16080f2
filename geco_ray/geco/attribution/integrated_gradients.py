"""Integrated Gradients (Sundararajan et al. 2017; GECOBench, methods) with memory that does not grow with the steps."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, Batch, Scores
from geco_ray.registry import Options


class IntegratedGradientsOptions(Options):
    """``n_steps``: points of the Gauss-Legendre rule on the path from the baseline."""

    n_steps: int = Field(200, ge=1)


@ATTRIBUTIONS.register("integrated_gradients", title="Integrated Gradients", options=IntegratedGradientsOptions)
def integrated_gradients(inputs: AttributionInputs, options: Options) -> Scores:
    """Signed sum over dimensions of ``(x - b) * integral of the gradient from b to x``, per token.

    The baseline b is ``[CLS] [PAD] ... [SEP]`` of the sentence's length. ``corrected`` integrates the logit over word
    embeddings (positions and types stay those of the sentence); ``paper`` integrates the softmax probability over the
    output of the embedding module. In both the baseline's ``[PAD]`` positions are attended like the words they
    replace, since the mask is the sentence's own.

    Passes hold as many points as the token budget allows, so a result agrees to about 1e-6 of a sentence's largest
    attribution, and not to the last bit, between budgets and in other company.
    """
    assert isinstance(options, IntegratedGradientsOptions)
    nodes, weights = np.polynomial.legendre.leggauss(options.n_steps)
    nodes, weights = (nodes + 1) / 2, weights / 2
    values: list[np.ndarray] = [np.zeros(0)] * len(inputs.rows)
    gaps = np.zeros(len(inputs.rows))
    for batch in inputs.batches():
        tokens, gap = _integrate(inputs, batch, nodes, weights)
        for index, position in enumerate(batch.positions):
            values[position], gaps[position] = tokens[index], gap[index]
    return Scores(values, completeness_gap=gaps)


def _integrate(
    inputs: AttributionInputs, batch: Batch, nodes: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Token attributions (n, L) and completeness gaps (n,) of one batch."""
    import torch

    from geco_ray.geco.gradients import ig_point, ig_scalar

    classifier, protocol = inputs.classifier, inputs.protocol
    n, length = batch.ids.shape
    baseline_ids = torch.full_like(batch.ids, inputs.tokens.tokenizer.pad_id)
    baseline_ids[:, 0], baseline_ids[:, -1] = batch.ids[:, 0], batch.ids[:, -1]
    with torch.no_grad():
        start = ig_point(classifier, baseline_ids, protocol)
        end = ig_point(classifier, batch.ids, protocol)
        change = ig_scalar(classifier, end, batch.classes, protocol) - ig_scalar(
            classifier, start, batch.classes, protocol
        )
    difference = end - start
    total = torch.zeros_like(start, dtype=torch.float64)
    # All (sentence, step) pairs in one line, cut into passes of bounded size: the steps of a pass may belong to
    # several sentences and a sentence may be spread over several passes.
    sentence = torch.arange(n, device=inputs.device).repeat_interleave(len(nodes))
    alpha = torch.from_numpy(nodes).to(start).repeat(n)
    weight = torch.from_numpy(weights).to(total).repeat(n)
    per_pass = max(1, inputs.token_budget // length)
    for first in range(0, len(sentence), per_pass):
        part = slice(first, first + per_pass)
        owner = sentence[part]
        point = (start[owner] + alpha[part, None, None] * difference[owner]).requires_grad_(True)
        scalar = ig_scalar(classifier, point, batch.classes[owner], protocol)
        (gradient,) = torch.autograd.grad(scalar.sum(), point)
        total.index_add_(0, owner, gradient.to(total) * weight[part, None, None])
    tokens = (total * difference).sum(2)
    return tokens.cpu().numpy(), (tokens.sum(1) - change).cpu().numpy()
