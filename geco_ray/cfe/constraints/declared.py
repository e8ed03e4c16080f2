"""The constraints that a data set's card declares, seen from the scaled space in which methods work.

A constraint is checked on everything that a method returns; what breaks one is counted and never repaired. A method
says which kinds it keeps by :func:`honours`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from geco_ray.files.text import compare_key

if TYPE_CHECKING:
    from geco_ray.cfe.data.cards import Card
    from geco_ray.cfe.data.categories import Group

KINDS = ("immutable", "one_way", "range", "allowed", "category")
"""Kinds of constraints: a value that stays, may only rise or only fall, an interval, a list of values, one of k."""

_SLACK = 1e-6  # relative, in the scaled space: what the way through float32 and back may add

F = TypeVar("F", bound=Callable[..., Any])


def honours(*kinds: str) -> Callable[[F], F]:
    """Decorator of a method's ``prepare``: the kinds of constraints that its answers keep; none if it keeps none.

    Raises:
        ValueError: a kind that is not in :data:`KINDS`.
    """
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise ValueError(f"unknown kinds of constraints: {unknown}, known are {KINDS}")

    def mark(prepare: F) -> F:
        prepare.honours = kinds  # type: ignore[attr-defined]
        return prepare

    return mark


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraints on the features of a data set.

    Attributes:
        features: their names.
        immutable, rising, falling: which ones stay, may only rise, may only fall; bool (d,).
        low, high: the ends of their intervals in the scaled space, float64 (d,), infinite where there is none.
        allowed: by a feature's number the only values it may have, in the scaled space, float64.
        shown: by a feature's number its interval as the card has it.
        choices: by the name of a column of categories where its features are, and its categories in the scaled space,
            float64 (categories, features).
    """

    features: tuple[str, ...]
    immutable: NDArray[np.bool_]
    rising: NDArray[np.bool_]
    falling: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    allowed: Mapping[int, NDArray[np.float64]]
    shown: Mapping[int, str]
    choices: Mapping[str, tuple[slice, NDArray[np.float64]]] = field(default_factory=dict)

    @staticmethod
    def of(
        card: Card,
        features: Sequence[str],
        mean: NDArray[np.float64],
        scale: NDArray[np.float64],
        groups: Sequence[Group] = (),
    ) -> Constraints | None:
        """What the card says of these features; ``None`` if it declares nothing.

        Args:
            card: names and values are those of the table.
            features: the features in the order of the scaled rows.
            mean: what was taken from each feature, float64 (d,). scale: by what it was divided.
            groups: the columns of categories.
        """
        if not card.declares_constraints:
            return None
        keys = [compare_key(name) for name in features]
        for group in groups:
            keys[group.columns] = [compare_key(group.name)] * (group.end - group.first)

        def named(names: Iterable[str]) -> NDArray[np.bool_]:
            return np.isin(keys, [compare_key(name) for name in names])

        ranges = {compare_key(name): ends for name, ends in card.ranges.items()}
        lists = {compare_key(name): values for name, values in card.allowed.items()}
        ends = np.array([ranges.get(key, (-np.inf, np.inf)) for key in keys], dtype=np.float64)
        low, high = ((ends[:, side] - mean) / scale for side in (0, 1))
        allowed = {
            i: (np.array(lists[key], dtype=np.float64) - mean[i]) / scale[i]
            for i, key in enumerate(keys)
            if key in lists
        }
        shown = {i: f"{ends[i, 0]:g} to {ends[i, 1]:g}" for i, key in enumerate(keys) if key in ranges}
        still, rising, falling = named(card.immutable), named(card.only_rising), named(card.only_falling)
        return Constraints(
            tuple(features), still, rising, falling, low, high, allowed, shown, _choices(groups, mean, scale)
        )

    def box(self, factuals: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lowest and highest values that each factual's answer may have, float64 (k, d) each; ignores lists."""
        low = np.where(self.immutable | self.rising, np.maximum(factuals, self.low), self.low)
        high = np.where(self.immutable | self.falling, np.minimum(factuals, self.high), self.high)
        # A factual outside its own interval keeps what is immutable.
        return np.where(self.immutable, factuals, low), np.where(self.immutable, factuals, high)

    def broken(self, factuals: NDArray[np.float64], points: NDArray[np.float64]) -> dict[str, NDArray[np.bool_]]:
        """Which points break what: sentences like ``age may only rise`` to bool (k,); only what is broken at all.

        Args:
            factuals: scaled rows, float64 (k, d) or (d,).
            points: what was returned, float64 (k, d).
        """
        factuals = np.broadcast_to(factuals, points.shape)
        slack = _SLACK * (1 + np.abs(factuals))
        rise = points - factuals
        found: dict[str, NDArray[np.bool_]] = {}
        for i, name in enumerate(self.features):
            up, down = rise[:, i] > slack[:, i], rise[:, i] < -slack[:, i]
            checks = [
                (bool(self.immutable[i]), f"{name} is immutable", up | down),
                (bool(self.rising[i]), f"{name} may only rise", down),
                (bool(self.falling[i]), f"{name} may only fall", up),
                (i in self.shown, f"{name} is outside {self.shown.get(i)}", self._outside(points[:, i], i)),
                (i in self.allowed, f"{name} is no allowed value", self._not_allowed(points[:, i], i)),
            ]
            found |= {text: failed for declared, text, failed in checks if declared and failed.any()}
        for name, (where, choices) in self.choices.items():
            gap = np.abs(points[:, None, where] - choices) / (1 + np.abs(choices))
            failed = gap.max(axis=2).min(axis=1) > _SLACK
            found |= {f"{name} is no category": failed} if failed.any() else {}
        return found

    def kept(self, factuals: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each point breaks nothing, bool (k,)."""
        failed = list(self.broken(factuals, points).values())
        return ~np.any(failed, axis=0) if failed else np.ones(len(points), dtype=np.bool_)

    def _outside(self, values: NDArray[np.float64], i: int) -> NDArray[np.bool_]:
        slack = _SLACK * (1 + np.abs(values))
        return np.asarray((values < self.low[i] - slack) | (values > self.high[i] + slack))

    def _not_allowed(self, values: NDArray[np.float64], i: int) -> NDArray[np.bool_]:
        known = self.allowed.get(i, np.zeros(1))
        gap = np.abs(values[:, None] - known).min(axis=1)
        return np.asarray(gap > _SLACK * (1 + np.abs(values)))


def _choices(
    groups: Sequence[Group], mean: NDArray[np.float64], scale: NDArray[np.float64]
) -> dict[str, tuple[slice, NDArray[np.float64]]]:
    """Where each group's features are, and its categories as methods see them."""
    return {
        group.name: (group.columns, (np.eye(group.end - group.first) - mean[group.columns]) / scale[group.columns])
        for group in groups
    }
