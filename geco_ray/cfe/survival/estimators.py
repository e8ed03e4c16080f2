"""Any classifier with ``fit`` and ``predict_proba``: fresh copies of it, and what it says, checked."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.decision import favourable
from geco_ray.cfe.survival.rows import text_columns
from geco_ray.errors import UserError, suggest

_SUM_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Labels:
    """The two labels: ``adverse`` and ``favourable``."""

    adverse: Any
    favourable: Any

    @staticmethod
    def of(y: NDArray[Any], wanted: Any) -> Labels:
        """The labels of ``y`` (n,), of which ``wanted`` is the favourable one; without it the 1 of 0 and 1.

        Raises:
            UserError: not two labels, or it cannot be told which one is favourable.
        """
        known = [value.item() if hasattr(value, "item") else value for value in np.unique(y)]
        if len(known) != 2:
            raise UserError("y is not binary", found=known[:10], expected="two labels")
        if wanted is None and set(known) == {0, 1}:
            wanted = known[1]
        if wanted not in known:
            remedy = "Name the label that people hope for with favourable=."
            raise UserError("no favourable label", found=wanted, expected=f"one of {known}", remedy=remedy)
        return Labels(*sorted(known, key=lambda value: bool(value == wanted)))

    def turned(self, y: NDArray[Any]) -> NDArray[Any]:
        """Each label replaced by the other one."""
        turned = np.where(y == self.favourable, self.adverse, self.favourable)
        return np.asarray(turned, dtype=y.dtype)


def check_estimator(estimator: Any) -> None:
    """Refuse what has no ``fit`` or no ``predict_proba``.

    Raises:
        UserError: names what is missing and what to do.
    """
    if isinstance(estimator, type):
        raise UserError("the estimator is a class", found=estimator.__name__, remedy="Give an object of it.")
    for name in ("fit", "predict_proba"):
        if not callable(getattr(estimator, name, None)):
            remedy = (
                "Wrap a torch module in geco_ray.cfe.survival.torch_classifier.TorchClassifier, and a classifier "
                "without probabilities in scikit-learn's CalibratedClassifierCV."
            )
            raise UserError(f"the estimator has no {name}", found=type(estimator).__name__, remedy=remedy)


def fresh(estimator: Any, settings: Mapping[str, Any] | None = None) -> Any:
    """An unfitted copy with other settings; a model that is not of scikit-learn's kind is copied deeply.

    Raises:
        UserError: a setting that the estimator does not have.
    """
    if not hasattr(estimator, "get_params"):
        if settings:
            raise UserError("the estimator takes no settings", remedy="Give it get_params and set_params.")
        return copy.deepcopy(estimator)
    from sklearn.base import clone

    copied = clone(estimator, safe=False)
    known = copied.get_params()
    for name in settings or {}:
        if name not in known:
            raise UserError(f"the estimator has no setting {name!r}", remedy=suggest(name, known))
    return copied.set_params(**dict(settings)) if settings else copied


def seed_settings(estimator: Any) -> list[str]:
    """The names of the settings that seed it, those of its parts included."""
    if not hasattr(estimator, "get_params"):
        return []
    return sorted(name for name in estimator.get_params() if name.split("__")[-1] == "random_state")


def fitted(estimator: Any, x: Any, y: NDArray[Any]) -> Any:
    """The estimator after its ``fit``.

    Raises:
        UserError: the model wants numbers and a column holds text.
        Exception: whatever else ``fit`` raises.
    """
    try:
        estimator.fit(x, y)
    except (TypeError, ValueError) as error:
        texts = text_columns(x)
        if texts and "convert" in str(error):
            remedy = "Encode it in a pipeline (OneHotEncoder, OrdinalEncoder), or give numbers."
            raise UserError(f"{texts[0]} holds text, and the model wants numbers", remedy=remedy) from None
        raise
    return estimator


def is_fitted(estimator: Any, rows: Any) -> bool:
    """Whether the estimator can be asked as it is."""
    from sklearn.exceptions import NotFittedError

    try:
        estimator.predict_proba(rows)
    except (NotFittedError, AttributeError):
        return False
    except Exception:
        return True  # it is fitted and dislikes these rows: said where they are judged
    return True


def probability(model: Any, rows: Any, labels: Labels, known: Sequence[Any]) -> NDArray[np.float64]:
    """The probability of the favourable label, float64 (n,), whatever the order of the model's classes.

    Args:
        model: a fitted model; without ``classes_`` its columns are taken to be ``known``.
        rows: (n, d).
        labels: the two labels.
        known: the labels of y, sorted.

    Raises:
        UserError: not two columns, rows that do not sum to 1, values outside 0 to 1, classes that are not the labels.
    """
    p = np.asarray(model.predict_proba(rows), dtype=np.float64)
    classes = list(getattr(model, "classes_", known))
    if p.ndim != 2 or p.shape[1] != 2 or len(p) != rows.shape[0]:
        expected = f"{(rows.shape[0], 2)}, a column for each label"
        remedy = "Return numpy.column_stack([1 - p, p])." if p.ndim == 1 or p.shape[-1] == 1 else None
        raise UserError("predict_proba gives another shape", found=p.shape, expected=expected, remedy=remedy)
    bad = ~(np.isfinite(p).all(axis=1) & (p >= 0).all(axis=1) & (np.abs(p.sum(axis=1) - 1) <= _SUM_TOLERANCE))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        expected = "two numbers from 0 to 1 that sum to 1"
        raise UserError(f"predict_proba of row {row} is no distribution", found=p[row].tolist(), expected=expected)
    if set(classes) != {labels.adverse, labels.favourable}:
        raise UserError("the model's classes are not the labels of y", found=classes, expected=str(list(known)))
    return np.ascontiguousarray(p[:, classes.index(labels.favourable)])


def decides_favourably(p: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The benchmark's rule, p >= 0.5, bool (n,)."""
    return np.asarray(favourable(p), dtype=np.bool_)
