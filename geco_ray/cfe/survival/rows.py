"""Tables as people have them: arrays, lists and data frames, taken, joined and compared without losing their kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.constraints.plausibility import Rows
from geco_ray.cfe.distance import robust_scale
from geco_ray.errors import UserError


def as_rows(given: Any, what: str, like: Any = None) -> Any:
    """``given`` as a two-dimensional array or data frame; ``None`` in a list of rows becomes a row without values.

    Args:
        given: rows, (n, d).
        what: what they are, for messages.
        like: a table that they must agree with, in the number, names and order of columns.

    Raises:
        UserError: no table, or one of other columns than ``like``.
    """
    if not hasattr(given, "iloc"):
        if isinstance(given, list | tuple) and any(row is None for row in given):
            wide = next((len(row) for row in given if row is not None), 0 if like is None else like.shape[1])
            given = [[np.nan] * wide if row is None else row for row in given]
        try:
            given = np.asarray(given)
        except ValueError:
            raise UserError(f"{what} are no table", expected="rows of one length") from None
    if given.ndim != 2:
        raise UserError(f"{what} are no table", found=given.shape, expected="two dimensions: rows and columns")
    return given if like is None else _agreeing(given, what, like)


def _agreeing(given: Any, what: str, like: Any) -> Any:
    if given.shape[1] != like.shape[1]:
        wanted = f"{like.shape[1]}, as X has"
        raise UserError(f"{what} have another number of columns", found=given.shape[1], expected=wanted)
    if not hasattr(like, "iloc"):
        return given.to_numpy() if hasattr(given, "iloc") else given
    if hasattr(given, "iloc"):
        for number, (mine, other) in enumerate(zip(given.columns, like.columns, strict=True), 1):
            if mine != other:
                remedy = "Give the columns in the order of X."
                raise UserError(f"{what}: column {number} differs", found=mine, expected=repr(other), remedy=remedy)
        return given
    import pandas as pd

    return pd.DataFrame(given, columns=like.columns).infer_objects()


def take(rows: Any, numbers: NDArray[np.int64]) -> Any:
    """The rows of these numbers, a copy of the same kind."""
    return rows.iloc[numbers] if hasattr(rows, "iloc") else rows[numbers]


def join(first: Any, second: Any) -> Any:
    """``first`` and below it ``second``, of the kind of ``first``."""
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat([first, second], ignore_index=True)
    return np.concatenate([first, second])


def columns_of(rows: Any) -> list[tuple[str, NDArray[Any]]]:
    """Name and values of each column."""
    if hasattr(rows, "iloc"):
        return [(str(name), np.asarray(rows.iloc[:, i], dtype=object)) for i, name in enumerate(rows.columns)]
    return [(f"column {i + 1}", rows[:, i]) for i in range(rows.shape[1])]


def missing(rows: Any) -> NDArray[np.bool_]:
    """Where a value is missing or not finite, bool (n, d)."""
    import pandas as pd

    found = np.array([pd.isna(values) for _, values in columns_of(rows)], dtype=np.bool_).T.reshape(rows.shape)
    for i, (_, values) in enumerate(columns_of(rows)):
        numbers = as_numbers(values)
        if numbers is not None:
            found[:, i] |= ~np.isfinite(numbers)
    return found


def as_numbers(values: NDArray[Any]) -> NDArray[np.float64] | None:
    """The values as float64, or ``None`` if one of them is text or another thing that is no number."""
    if any(isinstance(value, str | bytes) for value in values.tolist()):
        return None
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return None


def proximity(factuals: Any, points: Any, train: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """How far each point is from its factual, and how many of its columns changed.

    The distance is the mean over columns of |difference| / median absolute deviation in ``train`` for numbers, and of
    1 for a changed category.

    Returns:
        Distances, float64 (k,), NaN where a value is missing; numbers of changed columns, int64 (k,).
    """
    parts, changed = [], []
    for (_, a), (_, b), (_, known) in zip(columns_of(factuals), columns_of(points), columns_of(train), strict=True):
        x, y, spread = as_numbers(a), as_numbers(b), as_numbers(known)
        if x is None or y is None or spread is None:
            differs = np.array([str(p) != str(q) for p, q in zip(a.tolist(), b.tolist(), strict=True)], dtype=np.bool_)
            parts.append(differs.astype(np.float64))
        else:
            differs = x != y
            scale = _spread(spread)
            parts.append(np.abs(x - y) / scale)
        changed.append(differs)
    return np.mean(parts, axis=0), np.sum(changed, axis=0, dtype=np.int64)


def encoded(rows: Any, train: Any) -> Rows:
    """Rows as the distance sees them: numbers in median absolute deviations of ``train``, categories as codes."""
    numbers, codes = [np.empty((len(rows), 0))], [np.empty((len(rows), 0), dtype=np.int64)]
    for (_, values), (_, known) in zip(columns_of(rows), columns_of(train), strict=True):
        x, spread = as_numbers(values), as_numbers(known)
        if x is None or spread is None:
            names = {text: code for code, text in enumerate(sorted(set(map(str, known.tolist()))))}
            codes.append(np.array([names.get(str(value), -1) for value in values.tolist()], dtype=np.int64)[:, None])
        else:
            numbers.append((x / _spread(spread))[:, None])
    return Rows(np.concatenate(numbers, axis=1), np.concatenate(codes, axis=1))


def text_columns(rows: Any) -> Sequence[str]:
    """The names of the columns that hold text."""
    return [name for name, values in columns_of(rows) if as_numbers(values) is None]


def _spread(values: NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(robust_scale(known[:, None].astype(np.float32))[0]) if len(known) else 1.0
