"""Counterfactuals held fixed and tried on changed versions of any classifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.survival.estimators import check_estimator, decides_favourably
from geco_ray.cfe.survival.families import Variant, variants
from geco_ray.cfe.survival.recipe import Recipe, Setting, make_recipe
from geco_ray.cfe.survival.requests import Requests, judge
from geco_ray.cfe.survival.result import Survival
from geco_ray.cfe.survival.rows import as_rows, take
from geco_ray.cfe.survival.tables import Answer, pairs_table, summary_table
from geco_ray.errors import UserError

SAME = 1e-9
"""Largest difference of probabilities between two models that say the same: sums in another order differ by less."""


def survival(
    estimator: Any,
    X: Any,
    y: Any,
    factuals: Any,
    counterfactuals: Any,
    *,
    families: Sequence[str] | None = None,
    update: tuple[Any, Any] | None = None,
    settings: Sequence[Setting] = (),
    architectures: Sequence[Setting] = (),
    favourable: Any = None,
    seed: int = 0,
) -> Survival:
    """Try given counterfactuals on changed versions of a classifier.

    Args:
        estimator: anything with ``fit`` and ``predict_proba``, fitted or not; it is not changed.
        X: its training rows, array or data frame (n, d).
        y: their labels (n,), two of them.
        factuals: the rejected rows (k, d).
        counterfactuals: what was returned for each (k, d); ``None`` or a row without values is no answer.
        families: names of change families; by default all that are possible.
        update: rows and labels that data addition draws from.
        settings: for training configuration, a list of settings or of other estimators, one for each variant.
        architectures: the same for architecture.
        favourable: the label that people hope for; by default 1 of 0 and 1.
        seed: of all random draws.

    Raises:
        UserError: what was given does not fit together, or a family is impossible; says what is.
    """
    check_estimator(estimator)
    recipe, notes = make_recipe(estimator, X, y, favourable, update, settings, architectures, seed)
    return _tried(recipe, factuals, counterfactuals, families, notes)


def _tried(recipe: Recipe, factuals: Any, points: Any, families: Sequence[str] | None, notes: list[str]) -> Survival:
    before, after = as_rows(factuals, "factuals", recipe.x), as_rows(points, "counterfactuals", recipe.x)
    if len(before) != len(after):
        raise UserError("factuals and counterfactuals differ in number", found=len(after), expected=str(len(before)))
    requests = judge(recipe, before, after, notes)
    planned, left_out = variants(recipe, families)
    answers = _answers(recipe, requests, planned, notes)
    return Survival(
        pairs_table(requests, planned, answers),
        requests.table,
        summary_table(requests, planned, answers),
        (*notes, *(f"Left out: {reason}" for reason in left_out)),
    )


def _answers(recipe: Recipe, requests: Requests, planned: Sequence[Variant], notes: list[str]) -> list[Answer]:
    """What each variant says; one that cannot be made is an answer with its reason, and the others go on."""
    points = take(requests.points, requests.found)
    probes = [rows for rows in (points, requests.factuals, recipe.x) if len(rows)]

    def opinions(model: Any) -> NDArray[np.float64]:
        return np.concatenate([recipe.chance(model, rows) for rows in probes])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = opinions(recipe.fit(recipe.x, recipe.y))
        base = opinions(recipe.base)
        answers = [
            _answer(
                variant,
                opinions,
                base if variant.family == "bounded_parameter" else again,
                len(points),
                len(requests.factuals),
            )
            for variant in planned
        ]
    if np.abs(again - base).max(initial=0.0) > SAME:
        share = 100 * float(np.mean(decides_favourably(again) != decides_favourably(base)))
        notes.append(f"fit on X and y does not give the base model again (it decides {share:.1f} % of rows otherwise).")
    if caught:
        first = str(caught[0].message).split("\n")[0]
        notes.append(f"{len(caught)} warnings while models were fitted; the first: {first}")
    return answers


def _answer(
    variant: Variant,
    opinions: Callable[[Any], NDArray[np.float64]],
    reference: NDArray[np.float64],
    points: int,
    factuals: int,
) -> Answer:
    try:
        p = opinions(variant.make())
    except (MemoryError, ImportError, OSError):
        raise
    except Exception as error:
        return Answer(None, None, None, f"{type(error).__name__}: {error}".split("\n")[0][:300])
    decided = decides_favourably(p)
    changed = bool(np.abs(p - reference).max(initial=0.0) > SAME)
    return Answer(changed, decided[:points], ~decided[points : points + factuals])
