"""The families of model change for any classifier: each variant is a ``fit`` of a fresh copy on changed circumstances.

Levels, shares and numbers of variants are those of the benchmark (:mod:`geco_ray.cfe.changes`), except that training
configuration and architecture take the lists of settings that the user gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from geco_ray.cfe.changes import bootstrap, bounded_parameter, data_addition, deletion, label_update, seed
from geco_ray.cfe.changes.base import VARIANTS_PER_FAMILY
from geco_ray.cfe.survival.estimators import fitted, fresh, seed_settings
from geco_ray.cfe.survival.perturb import has_parameters, perturbed
from geco_ray.cfe.survival.recipe import Recipe, Setting
from geco_ray.cfe.survival.rows import join, take
from geco_ray.errors import UserError, unknown_name


@dataclass(frozen=True, eq=False)
class Variant:
    """A changed model to be made: its family, its number there, its level and how it is made."""

    family: str
    number: int
    level: str
    make: Callable[[], Any]


Make = Callable[[np.random.Generator], Any]
Levelled = Iterator[tuple[str, Make]]


def _seed(recipe: Recipe) -> Levelled:
    names = seed_settings(recipe.estimator)

    def make(stream: np.random.Generator) -> Any:
        return recipe.fit(recipe.x, recipe.y, {name: int(stream.integers(2**31)) for name in names})

    yield from [(seed.LEVEL, make)] * VARIANTS_PER_FAMILY


def _bootstrap(recipe: Recipe) -> Levelled:
    def make(stream: np.random.Generator) -> Any:
        n = len(recipe.y)
        rows = stream.integers(0, n, n)
        return recipe.fit(take(recipe.x, rows), recipe.y[rows])

    yield from [(bootstrap.LEVEL, make)] * VARIANTS_PER_FAMILY


def _deletion(recipe: Recipe) -> Levelled:
    def keep(share: float) -> Callable[[np.random.Generator], Any]:
        def make(stream: np.random.Generator) -> Any:
            n = len(recipe.y)
            rows = np.sort(stream.choice(n, size=round((1 - share) * n), replace=False))
            return recipe.fit(take(recipe.x, rows), recipe.y[rows])

        return make

    for level, (share, replicates) in deletion.SHARES.items():
        yield from [(level, keep(share))] * replicates


def _data_addition(recipe: Recipe) -> Levelled:
    if recipe.update is None:
        raise UserError("data_addition has no rows to add", remedy="Give them with update=(rows, labels).")
    more, labels = recipe.update

    def add(share: float) -> Callable[[np.random.Generator], Any]:
        def make(stream: np.random.Generator) -> Any:
            rows = np.sort(stream.choice(len(labels), size=max(1, round(share * len(labels))), replace=False))
            return recipe.fit(join(recipe.x, take(more, rows)), np.concatenate([recipe.y, labels[rows]]))

        return make

    for level, (share, replicates) in data_addition.SHARES.items():
        yield from [(level, add(share))] * replicates


def _label_update(recipe: Recipe) -> Levelled:
    def turn(share: float) -> Callable[[np.random.Generator], Any]:
        def make(stream: np.random.Generator) -> Any:
            rows = stream.choice(len(recipe.y), size=max(1, round(share * len(recipe.y))), replace=False)
            y = recipe.y.copy()
            y[rows] = recipe.labels.turned(y[rows])
            return recipe.fit(recipe.x, y)

        return make

    for level, (share, replicates) in label_update.SHARES.items():
        yield from [(level, turn(share))] * replicates


def _listed(recipe: Recipe, given: Sequence[Setting], family: str, argument: str) -> Levelled:
    if not given:
        remedy = f"Give a list of settings with {argument}=, as [{{'max_depth': 3}}, ...]."
        raise UserError(f"{family} has no settings to try", remedy=remedy)
    for setting in given:
        if isinstance(setting, Mapping):
            fresh(recipe.estimator, setting)  # an unknown setting is a fault of the list, not of one variant
            level = ", ".join(f"{name}={value}" for name, value in setting.items())
            yield level, partial(_with_settings, recipe, setting)
        else:
            yield type(setting).__name__, partial(_with_another, recipe, setting)


def _with_settings(recipe: Recipe, setting: Mapping[str, Any], _: np.random.Generator) -> Any:
    return recipe.fit(recipe.x, recipe.y, setting)


def _with_another(recipe: Recipe, estimator: Any, _: np.random.Generator) -> Any:
    return fitted(fresh(estimator), recipe.x, recipe.y)


def _training_config(recipe: Recipe) -> Levelled:
    return _listed(recipe, recipe.settings, "training_config", "settings")


def _architecture(recipe: Recipe) -> Levelled:
    return _listed(recipe, recipe.architectures, "architecture", "architectures")


def _bounded_parameter(recipe: Recipe) -> Levelled:
    if not has_parameters(recipe.base):
        what = f"bounded_parameter: {type(recipe.base).__name__} shows no parameters to move"
        raise UserError(what, expected="coef_ and intercept_, coefs_ and intercepts_, or parameter_arrays()")
    for level, radius in bounded_parameter.RADII.items():
        yield from [(level, partial(perturbed, recipe.base, radius))] * bounded_parameter.REPLICATES


FAMILIES: Mapping[str, Callable[[Recipe], Levelled]] = {
    "seed": _seed,
    "bootstrap": _bootstrap,
    "deletion": _deletion,
    "data_addition": _data_addition,
    "label_update": _label_update,
    "training_config": _training_config,
    "architecture": _architecture,
    "bounded_parameter": _bounded_parameter,
}
"""The families that work through a ``fit`` or on shown parameters, in the order of the benchmark."""


def variants(recipe: Recipe, wanted: Sequence[str] | None) -> tuple[list[Variant], list[str]]:
    """All variants of the wanted families, and why families were left out that nobody named.

    Args:
        recipe: what the model was made of.
        wanted: names of families; ``None`` takes all that this model and these arguments allow.

    Raises:
        UserError: an unknown family, or a named one that is impossible here; the message lists those that are possible.
    """
    made: dict[str, list[Variant]] = {}
    refused: dict[str, UserError] = {}
    for family, levels in FAMILIES.items():
        try:
            made[family] = _numbered(recipe, family, list(levels(recipe)))
        except UserError as error:
            refused[family] = error
    for name in wanted or ():
        if name not in FAMILIES:
            raise unknown_name("change family", name, FAMILIES)
        if name in refused:
            fault = refused[name]
            also = f"{fault.remedy or ''} Possible here: {', '.join(made)}.".strip()
            raise UserError(fault.what, found=fault.found, expected=fault.expected, remedy=also)
    names = list(made) if wanted is None else list(dict.fromkeys(wanted))
    left_out = [str(fault) for fault in refused.values() if wanted is None]
    return [variant for name in names for variant in made[name]], left_out


def _numbered(recipe: Recipe, family: str, levels: Sequence[tuple[str, Make]]) -> list[Variant]:
    return [
        Variant(family, number, level, partial(_made, recipe, family, level, number, make))
        for number, (level, make) in enumerate(levels)
    ]


def _made(recipe: Recipe, family: str, level: str, number: int, make: Make) -> Any:
    return make(recipe.stream(family, level, number))
