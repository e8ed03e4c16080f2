"""Parameter perturbation of fitted models that show their parameters: linear models, MLPs, torch modules."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np


def perturbed(model: Any, radius: float, stream: np.random.Generator) -> Any:
    """A copy whose parameters moved in a random direction; the largest component of the move is ``radius``.

    Args:
        model: a fitted model, a pipeline that ends in one, or a search that holds one.
        radius: in the units of the parameters.
        stream: draws the direction, independent U(-1, 1) entries.

    Raises:
        ValueError: the model shows no parameters.
    """
    moved = copy.deepcopy(model)
    arrays = _parameters(moved)
    if not arrays:
        raise ValueError("the model shows no parameters")
    drawn = [stream.uniform(-1, 1, array.shape) for array in arrays]
    scale = radius / max(float(np.abs(direction).max()) for direction in drawn)
    for array, direction in zip(arrays, drawn, strict=True):
        array += (direction * scale).astype(array.dtype)
    return moved


def has_parameters(model: Any) -> bool:
    """Whether :func:`perturbed` can move this fitted model."""
    return bool(_parameters(model))


def _parameters(model: Any) -> list[Any]:
    """The arrays of floats that a fitted model decides by; changing one in place changes the model."""
    model = getattr(model, "best_estimator_", model)
    if hasattr(model, "steps"):
        return _parameters(model.steps[-1][1])
    if callable(getattr(model, "parameter_arrays", None)):
        return list(model.parameter_arrays())
    if hasattr(model, "support_"):  # a support vector machine computes from its vectors, and its coef_ is a view
        return []
    for weights, biases in (("coef_", "intercept_"), ("coefs_", "intercepts_")):
        if hasattr(model, weights) and hasattr(model, biases):
            found = [getattr(model, weights), getattr(model, biases)]
            arrays = [array for group in found for array in (group if isinstance(group, list) else [group])]
            return [array for array in arrays if isinstance(array, np.ndarray) and array.size]
    return []
