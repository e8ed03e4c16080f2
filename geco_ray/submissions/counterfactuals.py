"""Submitted counterfactuals: request id and values, one row per answered request of a base model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geco_ray.errors import UserError
from geco_ray.submissions.cards import SubmissionCard, read_card, require_kind
from geco_ray.submissions.rows import Row, finite, numbers, read_rows, text, whole_number

Point = npt.NDArray[np.float64]
_KEYS = ("dataset", "base_seed", "seeding", "request")


class BaseKey(NamedTuple):
    """Which base model a counterfactual was made for."""

    dataset: str
    base_seed: int
    seeding: str


@dataclass(frozen=True, eq=False)
class CounterfactualFile:
    """A file's rows.

    Attributes:
        path, card: the file. columns: names of the values where each has a column of its own, else None.
        points: base model to request to values, None for a request whose cells are empty.
    """

    path: Path
    card: SubmissionCard
    columns: tuple[str, ...] | None
    points: Mapping[BaseKey, Mapping[int, Point | None]]

    def rows(self, key: BaseKey, features: Sequence[str], mean: Point, scale: Point) -> dict[int, Point | None]:
        """Request to values of one base model, standardised, in the order of ``features``.

        Raises:
            UserError: another number of values than features, or columns of other names.
        """
        order = self._order(key, features)
        found: dict[int, Point | None] = {}
        for request, point in self.points.get(key, {}).items():
            if point is None:
                found[request] = None
                continue
            if len(point) != len(features):
                raise UserError(
                    f"request {request} of {key.dataset!r}, base seed {key.base_seed}, has another number of values",
                    where=str(self.path), found=len(point), expected=f"{len(features)}: {', '.join(features)}",
                )  # fmt: skip
            own = point if order is None else point[order]
            found[request] = (own - mean) / scale if self.card.values == "original" else own
        return found

    def _order(self, key: BaseKey, features: Sequence[str]) -> list[int] | None:
        if self.columns is None:
            return None
        for name in self.columns:
            if name not in features:
                raise UserError(
                    f"{key.dataset!r} has no feature {name!r}", where=str(self.path), expected=", ".join(features)
                )
        for name in features:
            if name not in self.columns:
                raise UserError(f"the column {name!r} is missing", where=str(self.path), remedy="Give every feature")
        return [self.columns.index(name) for name in features]


@lru_cache(maxsize=8)
def read_counterfactuals(path: Path, content: str = "") -> CounterfactualFile:
    """Read and check a file of counterfactuals.

    Args:
        path: a CSV or Parquet file with its card. content: its identity; only so that a changed file is read again.

    Raises:
        UserError: a fault of card or file, with its place: a wrong id, a request twice, a number that is not finite.
    """
    card = read_card(path)
    require_kind(card, "counterfactuals", path)
    points: dict[BaseKey, dict[int, Point | None]] = {}
    places: dict[tuple[BaseKey, int], str] = {}
    columns: tuple[str, ...] | None = None
    for row in read_rows(path):
        where, values = row
        key, request = _key(row, card), whole_number(row, "request")
        if (first := places.setdefault((key, request), where)) != where:
            raise UserError(f"request {request} is answered twice", where=where, found=first, remedy="Keep one")
        own = {name: value for name, value in values.items() if name not in _KEYS}
        if "values" not in own:
            columns = tuple(own)
        points.setdefault(key, {})[request] = numbers(row, "values") if "values" in own else _point(where, own)
    if not points:
        raise UserError("the submission has no row", where=str(path), remedy="Give one row per answered request")
    return CounterfactualFile(path, card, columns, points)


def _point(where: str, own: Mapping[str, object]) -> Point | None:
    return None if all(value is None for value in own.values()) else finite(where, own)


def _key(row: Row, card: SubmissionCard) -> BaseKey:
    seeding = text(row, "seeding", card.seeding or "paper")
    if seeding not in ("paper", "independent"):
        raise UserError(f"unknown seeding {seeding!r}", where=row[0], expected="paper or independent")
    return BaseKey(text(row, "dataset", card.dataset), whole_number(row, "base_seed", card.base_seed), seeding)
