"""Forward passes of changed sentences: one function for every method that looks at what a change does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import torch

from geco_ray.geco.attribution.base import LENGTH_STEP, ZERO_ID, AttributionInputs, FloatArray, Scalar
from geco_ray.geco.passes.gradients import word_vectors
from geco_ray.geco.tokens import IntArray


def logits(inputs: AttributionInputs, rows: Sequence[IntArray]) -> FloatArray:
    """The classifier's logits of any id rows, (rows, labels), in their order.

    Equal rows are computed once. Rows of similar length (of equal length, where the classifier attends to padding)
    share a pass, as many as the token budget allows, and are padded to its longest under a mask. The shape of a pass
    follows from ``rows`` alone: call it with one sentence's rows for results that are the same in any company.

    Args:
        rows: each (L,), special tokens included; the id -1 (``ZERO_ID``) stands for a zero vector, and so does a piece
            that a classifier has no embedding of (OLA-CEA keeps those of its task; where weight decay acts, as in
            ``paper``, untrained ones shrink to zero).
    """
    numbers: dict[bytes, int] = {}
    unique: list[IntArray] = []
    index = np.zeros(len(rows), np.int64)
    for place, row in enumerate(rows):
        key = row.tobytes()
        if key not in numbers:
            numbers[key] = len(unique)
            unique.append(row)
        index[place] = numbers[key]
    return _unique_logits(inputs, unique)[index]


def scores(inputs: AttributionInputs, rows: Sequence[IntArray], scalar: Scalar) -> FloatArray:
    """Logits, or probabilities, of every class, (rows, labels); see :func:`logits`."""
    found = logits(inputs, rows)
    if scalar == "logit":
        return found
    if not inputs.classifier.decides_by_logits:
        given: FloatArray = inputs.classifier.probabilities(torch.from_numpy(found)).numpy()
        return given
    powers = np.exp(found - found.max(1, keepdims=True))
    result: FloatArray = powers / powers.sum(1, keepdims=True)
    return result


def _unique_logits(inputs: AttributionInputs, rows: Sequence[IntArray]) -> FloatArray:
    step = 1 if inputs.classifier.padding_matters else LENGTH_STEP
    groups: dict[int, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        groups[-(-len(row) // step)].append(place)
    result = np.zeros((len(rows), len(inputs.tokens.task.labels)))
    with torch.no_grad():
        for group in groups.values():
            per_pass = max(1, inputs.token_budget // max(len(rows[place]) for place in group))
            for part in np.array_split(np.array(group), -(-len(group) // per_pass)):
                result[part] = _pass(inputs, [rows[place] for place in part])
    return result


def _pass(inputs: AttributionInputs, rows: Sequence[IntArray]) -> FloatArray:
    longest = max(len(row) for row in rows)
    ids = np.full((len(rows), longest), inputs.tokens.tokenizer.pad_id, np.int64)
    mask = np.zeros((len(rows), longest), np.bool_)
    for place, row in enumerate(rows):
        ids[place, : len(row)], mask[place, : len(row)] = row, True
    given = torch.from_numpy(ids).to(inputs.device)
    given = given.masked_fill(~inputs.classifier.knows(given), ZERO_ID)
    vectors = word_vectors(inputs.classifier, given)
    keep = None if mask.all() else torch.from_numpy(mask).to(inputs.device)
    found: FloatArray = inputs.classifier.logits_from_words(vectors, keep).to(torch.float64).cpu().numpy()
    return found
