"""Columns of categories: each becomes one column of 0 and 1 for every category, in the card's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geco_ray.cfe.data.csv_lines import CsvRows
from geco_ray.errors import UserError, suggest
from geco_ray.files.text import compare_key

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Group:
    """The features ``first`` to ``end`` (excluded) that stand for one column ``name`` of categories."""

    name: str
    first: int
    end: int

    @property
    def columns(self) -> slice:
        """Where its features are."""
        return slice(self.first, self.end)


def one_hot(
    table: CsvRows, position: int, categories: Sequence[str]
) -> tuple[tuple[str, ...], npt.NDArray[np.float64]]:
    """Names (``job=clerk``) and values, float64 (n, categories), of a column of text.

    Raises:
        UserError: a value that the card does not list, named with its line.
    """
    known = {compare_key(value): number for number, value in enumerate(categories)}
    x = np.zeros((len(table.rows), len(categories)))
    for row, text in enumerate(table.column(position)):
        number = known.get(compare_key(text))
        if number is None:
            raise UserError(
                f"a category of column {table.header[position]!r} that the card does not list",
                where=table.where(row, position),
                found=text,
                expected=f"one of {', '.join(map(repr, categories))}",
                remedy=f"{suggest(text, categories)} A missing value is a category of its own if the card lists it.",
            )
        x[row, number] = 1
    return tuple(f"{table.header[position]}={value}" for value in categories), x
