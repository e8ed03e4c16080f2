"""Read a CSV strictly: every fault is told with its column and row before anything is trained."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from geco_ray.errors import UserError, suggest

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from geco_ray.cfe.data.cards import Card


@dataclass(frozen=True)
class Table:
    """A cleaned table: features float64 (n, d), labels int64 (n,), the row's number in the raw table (0-based)."""

    features: tuple[str, ...]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.int64]
    row_ids: npt.NDArray[np.int64]


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_table(path: Path, card: Card) -> Table:
    """Read and clean ``path`` as its card says.

    Raises:
        UserError: a duplicated, missing or unknown column; a missing, infinite or textual value in a feature; a target
            value the card does not list; too few rows or favourable rows for a card that states their number. The
            message names column and line (the header is line 1).
    """
    header = _header(path)
    frame = _frame(path)
    frame.columns = header
    features = _feature_names(header, card, where=str(path))
    lines = np.arange(2, len(frame) + 2)
    columns = [numbers(frame[name], name, path, lines) for name in features]
    x = np.column_stack(columns) if len(frame) else np.empty((0, len(features)))
    y = labels(frame[card.target], card, path, lines)
    keep = (x >= 0).all(axis=1) if card.drop_rows_with_negative_values else np.ones(len(x), dtype=bool)
    table = Table(features, x[keep], y[keep], np.flatnonzero(keep).astype(np.int64))
    check_table(table, card, where=str(path))
    return table


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
    for column, name in enumerate(table.features):
        values = table.x[:, column]
        if (values == values[0]).all():
            raise UserError(
                f"column {name!r} is constant", where=where, found=float(values[0]), remedy="Drop it in the card."
            )
        low, high = card.ranges.get(name, (-np.inf, np.inf))
        outside = np.flatnonzero((values < low) | (values > high))
        if len(outside):
            raise UserError(
                f"column {name!r}, row {int(table.row_ids[outside[0]])} is outside the card's range",
                where=where,
                found=float(values[outside[0]]),
                expected=f"{low:g} to {high:g}",
            )


def numbers(column: pd.Series, name: str, path: Path, lines: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """A column as finite float64 numbers; the first value that is none is named with its line."""
    import pandas as pd

    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raw = column.iloc[int(bad[0])]
        missing = bool(pd.isna(raw))
        what = "missing value" if missing else "text" if isinstance(raw, str) else "value that is not finite"
        raise UserError(
            f"{what} in numeric column {name!r}",
            where=f"{path}:{int(lines[bad[0]])}",
            found=None if missing else str(raw),
            expected="a finite number",
            remedy=f"{len(bad)} of {len(values)} rows of this column are affected." if len(bad) > 1 else None,
        )
    return values


def labels(column: pd.Series, card: Card, path: Path, lines: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The target column as 1 (favourable) and 0 (adverse), compared as text.

    Raises:
        UserError: a missing or unlisted value with its line; a favourable value that never occurs.
    """
    missing = np.flatnonzero(column.isna().to_numpy())
    if len(missing):
        where = f"{path}:{int(lines[missing[0]])}"
        raise UserError(f"missing value in the target {card.target!r}", where=where)
    text = column.astype(str).to_numpy()
    present = sorted(set(text))
    for value in card.favourable:
        if value not in present:
            raise UserError(
                f"favourable value {value!r} never occurs in the target {card.target!r}",
                where=str(path),
                remedy=suggest(value, present[:20]),
            )
    others = [value for value in present if value not in card.favourable]
    if not card.adverse and len(others) > 1:
        raise UserError(
            f"the target {card.target!r} has several values that are not favourable",
            where=str(path),
            found=others[:10],
            remedy="List the adverse ones in the card under 'adverse'.",
        )
    known = {*card.favourable, *(card.adverse or others)}
    strange = np.flatnonzero([value not in known for value in text])
    if len(strange):
        raise UserError(
            f"unknown value in the target {card.target!r}",
            where=f"{path}:{int(lines[strange[0]])}",
            found=str(text[strange[0]]),
            expected="one of " + ", ".join(sorted(known)),
        )
    return np.isin(text, card.favourable).astype(np.int64)


def _header(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = [name.strip() for name in next(csv.reader(file), [])]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"the table cannot be read: {error}", where=str(path)) from None
    if not header:
        raise UserError("the table is empty", where=str(path))
    for position, name in enumerate(header):
        if name in header[:position]:
            raise UserError(
                f"column {name!r} stands twice in the header",
                where=f"{path}:1",
                found=f"columns {header.index(name) + 1} and {position + 1}",
            )
    return header


def _frame(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_csv(path, encoding="utf-8-sig", index_col=False, skip_blank_lines=False)
    except (ValueError, UnicodeDecodeError) as error:  # pandas' parser errors are ValueErrors and name the line
        raise UserError(f"the table cannot be read: {error}", where=str(path)) from None


def _feature_names(header: list[str], card: Card, *, where: str) -> tuple[str, ...]:
    named = [card.target, *card.drop, *card.features, *card.integers, *card.immutable, *card.ranges]
    for name in named:
        if name not in header:
            raise UserError(
                f"the table lacks column {name!r} of the card {card.name!r}", where=where, remedy=suggest(name, header)
            )
    rest = tuple(name for name in header if name != card.target and name not in card.drop)
    if card.features and set(card.features) != set(rest):
        extra = sorted(set(rest) ^ set(card.features))
        raise UserError("columns differ from the card's features", where=where, found=extra)
    if not rest:
        raise UserError("no feature is left", where=where, found=header)
    return card.features or rest
