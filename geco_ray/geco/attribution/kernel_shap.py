"""Kernel SHAP (Lundberg and Lee 2017; GECOBench, methods) by Captum's definition, drawn and solved in arrays."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, FloatArray, ModelOptions, Scores
from geco_ray.geco.tokens import IntArray, TokenRow
from geco_ray.registry import Options, Profile

END_WEIGHT = 1e6
"""Weight of the sentence itself and of its baseline, which the fit has to meet; every draw has weight 1."""

CUTOFF = 1e-6
"""Singular values below this share of the largest count as zero, as in scikit-learn's least squares."""


class KernelShapOptions(ModelOptions):
    """``n_samples``: coalitions, the full and the empty one among them.

    Null is the protocol's: ``corrected``, 2 M + 2,048 for M words, and all subsets with their exact weights where these
    are no more; ``paper``, 25, fewer than most sentences have tokens, so that the fit is singular and its solution the
    shortest one.
    """

    LIBRARY_DEFAULTS: ClassVar = {"n_samples": 25}

    n_samples: int | None = Field(None, ge=2)


@ATTRIBUTIONS.register(
    "kernel_shap",
    title="Kernel SHAP",
    options=KernelShapOptions,
    profile=Profile(order=3, colour="#9A6A00", marker="s", aims=True),
)
def kernel_shap(inputs: AttributionInputs, options: Options) -> Scores:
    """Coefficients of the weighted least-squares fit of the scalar on which features are present.

    Features are the words with a piece (``corrected``; a blank word has 0) or all tokens (``paper``); an absent feature
    has the baseline's ids in all its places.
    """
    from geco_ray.geco.passes.perturbation import scores

    assert isinstance(options, KernelShapOptions)
    protocol = inputs.protocol
    scalar = inputs.scalar or protocol.ig_scalar
    values: list[FloatArray] = []
    changes = np.zeros(len(inputs.rows))
    for position, (row, sentence) in enumerate(zip(inputs.rows, inputs.sentences, strict=True)):
        feature, count = _features(sentence, protocol.kernel_shap_unit)
        present = np.unique(feature[feature >= 0])
        given = options.n_samples or protocol.kernel_shap_samples
        coalitions, weights = draw_coalitions(inputs.random("kernel_shap", row), len(present), given)
        kept = np.ones((len(coalitions), len(sentence)), np.bool_)
        kept[:, feature >= 0] = coalitions[:, np.searchsorted(present, feature[feature >= 0])]
        changed = np.where(kept, sentence.ids, inputs.baseline_ids(sentence))
        found = scores(inputs, list(changed), scalar)[:, inputs.classes[position]]
        value = np.zeros(count)
        value[present] = fit_coalitions(coalitions, found, weights)
        values.append(value)
        changes[position] = found[0] - found[1]
    gaps = np.array([value.sum() for value in values]) - changes
    return Scores(values, protocol.kernel_shap_unit, completeness_gap=gaps, explained_change=changes)


def _features(sentence: TokenRow, unit: str) -> tuple[IntArray, int]:
    """The feature of each token, -1 for none, and the number of the unit's features."""
    if unit == "token":
        return np.arange(len(sentence)), len(sentence)
    return np.where(sentence.words < 0, -1, sentence.words), sentence.word_count


def draw_coalitions(
    generator: np.random.Generator, features: int, samples: int | None
) -> tuple[npt.NDArray[np.bool_], FloatArray]:
    """Coalitions (samples, features), the full one first and the empty one second, and their weights.

    A draw's size k has a chance in proportion to (M - 1) / (k (M - k)), and all coalitions of a size are alike; so each
    draw has weight 1. Without ``samples`` these are 2 M + 2,048 draws, or all subsets, once each and weighted by the
    Shapley kernel, if they are no more. One feature or none has no coalition between the two.
    """
    everything = samples is None and 2**features <= 2 * features + 2048
    draws = 0 if features < 2 else (2 * features + 2048 if samples is None else samples) - 2
    ends = np.array([[True] * features, [False] * features], np.bool_)
    sizes = np.arange(1, features)
    if everything and features >= 2:
        subsets = (np.arange(1, 2**features - 1)[:, None] >> np.arange(features) & 1).astype(np.bool_)
        kernel = np.array([(features - 1) / (math.comb(features, k) * k * (features - k)) for k in sizes.tolist()])
        return np.concatenate([ends, subsets]), np.concatenate([[END_WEIGHT] * 2, kernel[subsets.sum(1) - 1]])
    weights = np.array([END_WEIGHT] * 2 + [1.0] * draws)
    if not draws:
        return ends, weights
    chance = 1 / (sizes * (features - sizes))
    drawn = generator.choice(sizes, size=draws, p=chance / chance.sum())
    rank = generator.random((draws, features)).argsort(1).argsort(1)
    return np.concatenate([ends, rank < drawn[:, None]]), weights


def fit_coalitions(coalitions: npt.NDArray[np.bool_], values: FloatArray, weights: FloatArray) -> FloatArray:
    """Coefficients (features,) of the weighted least-squares fit with an intercept; the shortest where many fit.

    Args:
        coalitions: (n, features).
        values: (n,), the scalar of each.
        weights: (n,).
    """
    share, root = weights / weights.sum(), np.sqrt(weights)
    design = coalitions.astype(np.float64)
    left = (design - share @ design) * root[:, None]
    right = (values - share @ values) * root
    coefficients: FloatArray = np.linalg.lstsq(left, right, rcond=CUTOFF)[0]
    return coefficients
