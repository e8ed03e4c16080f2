"""What a table's cells mean: features as finite numbers, the target as 0 and 1, rows that its card leaves out.

Every fault is reported with its column and line before anything is trained.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from geco_ray.cfe.data.cards import CONSTRAINTS, Card
from geco_ray.cfe.data.categories import Group, one_hot
from geco_ray.cfe.data.csv_lines import CsvRows, read_csv
from geco_ray.cfe.data.labels import NUMBER, read_labels
from geco_ray.cfe.data.remarks import MISSING_TEXTS, Remark, remarks_on
from geco_ray.errors import UserError, suggest
from geco_ray.files.text import compare_key, first_repeated

if TYPE_CHECKING:
    import numpy.typing as npt

_TRUTH = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}
_COMMA_IN_A_NUMBER = re.compile(r"[+-]?\d[\d.]*(,\d+)+(\.\d+)?")


@dataclass(frozen=True)
class Table:
    """A cleaned table: features float64 (n, d), labels int64 (n,), the row's number in the raw table (0-based).

    ``groups`` are the columns of categories, each of several features. ``places`` names file and line of each row
    (empty for a table without a file), ``left_out`` is the number of rows that the card leaves out, ``remarks`` are
    values worth a look.
    """

    features: tuple[str, ...]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.int64]
    row_ids: npt.NDArray[np.int64]
    places: tuple[str, ...] = ()
    left_out: int = 0
    remarks: tuple[Remark, ...] = ()
    groups: tuple[Group, ...] = ()

    def place(self, row: int, otherwise: str) -> str:
        """File and line of a row of ``x``, or ``otherwise`` for a table without a file."""
        return self.places[row] if self.places else otherwise


def read_table(path: Path, card: Card) -> Table:
    """Read and clean ``path`` as its card says.

    Raises:
        UserError: what :func:`geco_ray.cfe.data.csv_lines.read_csv` refuses; a missing, unnamed or unknown column; a
            missing, infinite or textual value in a feature, or one that the card calls missing; a target value the card
            does not list; too few rows or favourable rows for a card that states their number. The message names
            column and line (the header is line 1).
    """
    table = read_csv(path)
    target, positions = _columns(table.header, card, where=f"{path}:1")
    features, x, groups = _features(table, positions, card)
    y, on_target = read_labels(table, target, card)
    keep = np.ones(len(x), dtype=np.bool_)
    if card.drop_rows_with_negative_values:
        keep = np.asarray((x >= 0).all(axis=1))
    kept = np.flatnonzero(keep).astype(np.int64)
    places = tuple(table.where(int(row)) for row in kept)
    of_numbers = [i for i in range(len(features)) if not any(group.first <= i < group.end for group in groups)]
    remarks = (*remarks_on(tuple(features[i] for i in of_numbers), x[:, of_numbers], keep), *on_target)
    found = Table(features, x[kept], y[kept], kept, places, len(x) - len(kept), remarks, groups)
    check_table(found, card, where=str(path))
    return found


def _features(
    table: CsvRows, positions: Sequence[int], card: Card
) -> tuple[tuple[str, ...], npt.NDArray[np.float64], tuple[Group, ...]]:
    """Names, values and groups of all features; a column of categories becomes several."""
    listed = {compare_key(name): values for name, values in card.categories.items()}
    names: list[str] = []
    columns: list[npt.NDArray[np.float64]] = []
    groups: list[Group] = []
    for position in positions:
        categories = listed.get(compare_key(table.header[position]))
        if categories is None:
            names.append(table.header[position])
            columns.append(numbers(table, position)[:, None])
        else:
            own, values = one_hot(table, position, categories)
            groups.append(Group(table.header[position], len(names), len(names) + len(own)))
            names += own
            columns.append(values)
    repeated = first_repeated(names)
    if repeated is not None:
        where = f"{table.path}:1"
        raise UserError("a feature and a category have one name", where=where, found=names[repeated[1]])
    return tuple(names), np.concatenate(columns, axis=1), tuple(groups)


def check_table(table: Table, card: Card, *, where: str) -> None:
    """Compare the cleaned table with what its card states, and refuse features that hold one value only.

    Raises:
        UserError: see above.
    """
    if card.rows is not None and len(table.y) != card.rows:
        raise UserError("wrong number of rows after cleaning", where=where, found=len(table.y), expected=str(card.rows))
    good = int(table.y.sum())
    if card.favourable_rows is not None and good != card.favourable_rows:
        raise UserError("wrong number of favourable rows", where=where, found=good, expected=str(card.favourable_rows))
    if not len(table.y):
        raise UserError("the table has no rows", where=where)
    ranges = {compare_key(name): limits for name, limits in card.ranges.items()}
    lists = {compare_key(name): values for name, values in card.allowed.items()}
    missing = _missing_codes(card)
    for column, name in enumerate(table.features):
        values = table.x[:, column]
        _refuse_missing(table, column, missing.get(compare_key(name), missing.get("", ())), where)
        if (values == values[0]).all():
            raise UserError(
                f"column {name!r} is constant", where=where, found=float(values[0]), remedy="Drop it in the card."
            )
        low, high = ranges.get(compare_key(name), (-np.inf, np.inf))
        outside = (values < low) | (values > high)
        _refuse_value(table, column, outside, "outside the card's range", f"{low:g} to {high:g}", where)
        allowed = lists.get(compare_key(name))
        if allowed is not None:
            listed = ", ".join(f"{value:g}" for value in allowed)
            _refuse_value(table, column, ~np.isin(values, allowed), "not a value that the card allows", listed, where)


def _refuse_value(
    table: Table, column: int, wrong: npt.NDArray[np.bool_], what: str, expected: str, where: str
) -> None:
    for row in np.flatnonzero(wrong)[:1].tolist():
        raise UserError(
            f"column {table.features[column]!r}, row {int(table.row_ids[row])} is {what}",
            where=table.place(row, where),
            found=float(table.x[row, column]),
            expected=expected,
        )


def _missing_codes(card: Card) -> Mapping[str, Sequence[float]]:
    """The card's codes by the key of a column; those of all columns under the empty name."""
    if isinstance(card.missing, Mapping):
        return {compare_key(name): codes for name, codes in card.missing.items()}
    return {"": card.missing}


def _refuse_missing(table: Table, column: int, codes: Sequence[float], where: str) -> None:
    rows = np.flatnonzero(np.isin(table.x[:, column], codes))
    if len(rows):
        raise UserError(
            f"column {table.features[column]!r} has a value that the card calls missing",
            where=table.place(int(rows[0]), where),
            found=f"{table.x[rows[0], column]:g}",
            expected="no missing values, since nothing is filled in",
            remedy=f"Drop the column in the card, or take the rows out ({len(rows)} of {len(table.y)}).",
        )


def numbers(table: CsvRows, position: int) -> npt.NDArray[np.float64]:
    """A column as finite float64 numbers (n,); truth values, if it has no others, are 1 and 0.

    Raises:
        UserError: a value that is no number, named with its line.
    """
    import pandas as pd

    cells = table.column(position)
    if cells and all(cell in _TRUTH for cell in cells):
        return np.array([_TRUTH[cell] for cell in cells])
    read = pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce")
    values: npt.NDArray[np.float64] = read.to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise _no_number(table, position, int(bad[0]), len(bad))
    return values


def _no_number(table: CsvRows, position: int, row: int, affected: int) -> UserError:
    raw = table.rows[row][position]
    text = raw.strip()
    missing = not text or text in MISSING_TEXTS
    infinite = text.lstrip("+-").casefold() in ("inf", "infinity") or NUMBER.fullmatch(text) is not None
    what = "missing value" if missing else "value that is not finite" if infinite else "text"
    remedy = []
    if what == "text":
        remedy.append("If the column holds categories, list them in the card under categories.")
    if _COMMA_IN_A_NUMBER.fullmatch(text):
        remedy.append("Write 1234 for 1,234 and 1.5 for 1,5.")
    if affected > 1:
        remedy.append(f"{affected} of {len(table.rows)} rows of this column are affected.")
    return UserError(
        f"{what} in numeric column {table.header[position]!r}",
        where=table.where(row, position),
        found=raw or None,
        expected="a finite number",
        remedy=" ".join(remedy) or None,
    )


def _columns(header: Sequence[str], card: Card, *, where: str) -> tuple[int, list[int]]:
    """Positions of the target and of the features, in the card's order if it has one."""
    position = {compare_key(name): number for number, name in enumerate(header)}
    missing = card.missing if isinstance(card.missing, Mapping) else ()
    constrained = [name for key in CONSTRAINTS for name in getattr(card, key)]
    for name in (card.target, *card.drop, *card.features, *card.integers, *constrained, *missing):
        if compare_key(name) not in position:
            raise UserError(
                f"the table lacks column {name!r} of the card {card.name!r}", where=where, remedy=suggest(name, header)
            )
    target = position[compare_key(card.target)]
    left_out = {target, *(position[compare_key(name)] for name in card.drop)}
    rest = [number for number in range(len(header)) if number not in left_out]
    unnamed = [number + 1 for number in rest if not header[number]]
    if unnamed:
        raise UserError(
            f"column {unnamed[0]} has no name",
            where=where,
            found=",".join(header),
            remedy="If it is the index, save the table without it (pandas: index=False, R: row.names = FALSE), or "
            'leave it out by drop: [""] in the card.',
        )
    chosen = [position[compare_key(name)] for name in card.features]
    if chosen and set(chosen) != set(rest):
        extra = sorted(header[number] for number in set(rest) ^ set(chosen))
        raise UserError("columns differ from the card's features", where=where, found=extra)
    if not rest:
        raise UserError("no feature is left", where=where, found=list(header))
    return target, chosen or rest
