"""What a model was made of, so that it can be made again in changed circumstances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.survival.estimators import Labels, fitted, fresh, is_fitted, probability, seed_settings
from geco_ray.cfe.survival.rows import as_rows, take
from geco_ray.errors import UserError
from geco_ray.seeds import derive_seed, numpy_stream

Setting = Mapping[str, Any] | Any
"""Settings for the estimator's ``set_params``, or another estimator in its place."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """All that a model was made of: ``estimator`` is unfitted and its seeds are fixed, ``base`` is the model itself."""

    estimator: Any
    base: Any
    x: Any
    y: NDArray[Any]
    labels: Labels
    update: tuple[Any, NDArray[Any]] | None
    settings: Sequence[Setting]
    architectures: Sequence[Setting]
    seed: int

    def stream(self, family: str, level: str, replicate: int) -> np.random.Generator:
        """The random stream of one variant."""
        return numpy_stream("survival", self.seed, family, level, replicate)

    def fit(self, x: Any, y: NDArray[Any], settings: Mapping[str, Any] | None = None) -> Any:
        """A fresh copy of the estimator, fitted on these rows."""
        return fitted(fresh(self.estimator, settings), x, y)

    def chance(self, model: Any, rows: Any) -> NDArray[np.float64]:
        """A model's probability of the favourable label, float64 (n,)."""
        return probability(model, rows, self.labels, np.unique(self.y).tolist())


def make_recipe(
    estimator: Any,
    x: Any,
    y: Any,
    favourable: Any,
    update: tuple[Any, Any] | None,
    settings: Sequence[Setting],
    architectures: Sequence[Setting],
    seed: int,
) -> tuple[Recipe, list[str]]:
    """What the model is made of; seeds that nobody fixed are fixed, so that a family changes one thing alone.

    Returns:
        The recipe, and what a reader must know about it.

    Raises:
        UserError: labels that do not fit the rows, or are not two.
    """
    x = as_rows(x, "X")
    y = _labels(y, x, "y")
    labels = Labels.of(y, favourable)
    pool = None if update is None else _pool(update, x, labels)
    params = estimator.get_params() if hasattr(estimator, "get_params") else {}
    free = [name for name in seed_settings(estimator) if params[name] is None]
    blank = fresh(estimator, {name: derive_seed("survival", seed, name) % 2**31 for name in free})
    notes = []
    if is_fitted(estimator, take(x, np.arange(1))):
        base = estimator
    else:
        base = fitted(fresh(blank), x, y)
        notes.append("The estimator was not fitted: the base model is its fit on X and y.")
    return Recipe(blank, base, x, y, labels, pool, settings, architectures, seed), notes


def _labels(y: Any, x: Any, what: str) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.shape != (len(x),):
        raise UserError(f"{what} does not fit its rows", found=labels.shape, expected=f"{(len(x),)}")
    return labels


def _pool(update: tuple[Any, Any], x: Any, labels: Labels) -> tuple[Any, NDArray[Any]]:
    rows = as_rows(update[0], "the rows of update", x)
    more = _labels(update[1], rows, "the labels of update")
    strange = [value for value in np.unique(more).tolist() if value not in (labels.adverse, labels.favourable)]
    if strange or not len(more):
        expected = f"rows with labels {labels.adverse!r} or {labels.favourable!r}"
        raise UserError("update has other labels, or no rows", found=strange, expected=expected)
    return rows, more
