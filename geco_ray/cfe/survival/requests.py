"""The given counterfactuals before any change: which of them are answers that the base model accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from geco_ray.cfe.constraints.plausibility import plausibility
from geco_ray.cfe.survival.estimators import decides_favourably
from geco_ray.cfe.survival.recipe import Recipe
from geco_ray.cfe.survival.rows import encoded, missing, proximity, take


@dataclass(frozen=True, eq=False)
class Requests:
    """The requests: rows, and what the base model made of them; ``points`` are the counterfactuals that came back."""

    factuals: Any
    points: Any
    status: list[str]
    table: pa.Table

    @property
    def found(self) -> NDArray[np.int64]:
        """The numbers of the requests whose counterfactual the base model accepts, int64."""
        return np.flatnonzero(np.array(self.status) == "found")


def judge(recipe: Recipe, factuals: Any, points: Any, notes: list[str]) -> Requests:
    """Status, probability and distance of every request."""
    k = len(factuals)
    gone, gaps = missing(points), missing(recipe.x).any(axis=0)
    status = np.full(k, "found", dtype=object)
    reason = np.full(k, None, dtype=object)
    broken = (gone & ~gaps).any(axis=1)
    status[broken], reason[broken] = "error", "a value is missing or not finite"
    none = gone.all(axis=1)
    status[none], reason[none] = "not_found", "nothing was returned"
    asked = np.flatnonzero(status == "found")
    p, distance = np.full(k, np.nan), np.full(k, np.nan)
    columns = np.zeros(k, dtype=np.int64)
    if len(asked):
        known = take(points, asked)
        p[asked] = recipe.chance(recipe.base, known)
        distance[asked], columns[asked] = proximity(take(factuals, asked), known, recipe.x)
        same = asked[columns[asked] == 0]
        status[same], reason[same] = "not_found", "the factual itself was returned"
        refused = [i for i in asked if columns[i] and not decides_favourably(p[i : i + 1])[0]]
        status[refused], reason[refused] = "base_invalid", "the base model calls the returned point adverse"
    if k and (already := int(decides_favourably(recipe.chance(recipe.base, factuals)).sum())):
        notes.append(f"The base model calls {already} of {k} factuals favourable already.")
    return Requests(factuals, points, status.tolist(), _table(recipe, points, status, reason, p, distance, columns))


def _table(
    recipe: Recipe,
    points: Any,
    status: NDArray[np.object_],
    reason: NDArray[np.object_],
    p: NDArray[np.float64],
    distance: NDArray[np.float64],
    columns: NDArray[np.int64],
) -> pa.Table:
    """A row per request; how far and how plausible an answer is stands only with what was found."""
    found = status == "found"
    good = np.flatnonzero(found)
    near, relative = np.full(len(status), np.nan), np.full(len(status), np.nan)
    wanted = take(recipe.x, np.flatnonzero(recipe.y == recipe.labels.favourable))
    near[good], relative[good] = plausibility(encoded(take(points, good), recipe.x), encoded(wanted, recipe.x))
    return pa.table(
        {
            "request": np.arange(len(status)),
            "status": pa.array(status.tolist(), pa.string()),
            "reason": pa.array(reason.tolist(), pa.string()),
            "base_probability": pa.array(p, from_pandas=True),
            "distance": pa.array(np.where(found, distance, np.nan), from_pandas=True),
            "changed_columns": pa.array(columns, mask=~found),
            "nearest_favourable": pa.array(near, from_pandas=True),
            "relative_distance": pa.array(relative, from_pandas=True),
        }
    )
