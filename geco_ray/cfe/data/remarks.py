"""Values that a table may not mean: codes for missing values, numbers of rows, class names that say "missing".

Nothing is refused and nothing is changed here. Such values are counted, so that a reader can decide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_LOWER = ("n/a", "na", "nan", "none", "null")
_UPPER = ("#N/A", "#NA", "#NULL!", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None")
MISSING_TEXTS = frozenset((*_LOWER, *_UPPER, "#", "-", ".", "?"))
"""Texts that other tools write for a missing value."""

_CODE = re.compile(r"(7+|8+|9+)(\.9+|\.25)?|32768|2147483648")
_PANDAS_INDEX = re.compile(r"Unnamed: \d+")  # what pandas calls a column without a name that it reads and writes again
_HUGE = 1e30  # no measurement; 1e30, 3.4e38 and the largest double are written for "nothing"
_NEIGHBOURS = 11  # distinct values from which the usual step between values is taken
_FEW = 6  # a column of fewer distinct values is taken for categories, where nothing stands apart


MISSING_VALUE = "a missing value"
ROW_NUMBER = "the number of the row"


@dataclass(frozen=True)
class Remark:
    """A value worth a look, as which it may be meant, and the rows that have it.

    ``rows`` counts those of the file and ``used`` those that stay after the card's cleaning. ``target`` says that the
    column is the target, where the value is taken as a class.
    """

    column: str
    value: str
    reading: str
    rows: int
    used: int
    target: bool = False


def remark_lines(name: str, remarks: Sequence[Remark]) -> list[str]:
    """The remarks on the data set ``name`` in sentences, one for all codes that are used, one for those left out."""
    codes = [remark for remark in remarks if remark.reading == MISSING_VALUE and not remark.target]
    lines = []
    if used := [remark for remark in codes if remark.used]:
        lines.append(f"{name}: taken as numbers, and may stand for missing values: {_counted(used)}.")
    if gone := [remark for remark in codes if not remark.used]:
        lines.append(f"{name}: may stand for missing values, in rows that the card leaves out: {_counted(gone)}.")
    for remark in remarks:
        if remark.target:
            what = f"{remark.value!r} in {_rows(remark.rows)} of the target {remark.column!r} is taken as a class"
            lines.append(f"{name}: {what}, and may be meant as {remark.reading}.")
        elif remark.reading == ROW_NUMBER:
            lines.append(
                f"{name}: the feature {remark.column!r} counts the rows ({remark.value}); drop it in the card?"
            )
    return lines


def _counted(remarks: Sequence[Remark]) -> str:
    """Codes with their counts; columns in which as many rows have the same code are listed together, four at most."""
    columns: dict[tuple[str, int], list[str]] = {}
    for remark in remarks:
        columns.setdefault((remark.value, remark.used or remark.rows), []).append(remark.column)
    parts = []
    for (value, rows), names in columns.items():
        shown = [name if name.isprintable() else repr(name) for name in names[:4]]
        more = f" and {len(names) - 4} more columns" if len(names) > 4 else ""
        parts.append(f"{value} in {_rows(rows)} of {', '.join(shown)}{more}")
    return "; ".join(parts)


def _rows(count: int) -> str:
    return f"{count:,} row" + "s" * (count != 1)


def remarks_on(features: Sequence[str], x: npt.NDArray[np.float64], keep: npt.NDArray[np.bool_]) -> list[Remark]:
    """Remarks on the columns of a table ``x`` (n, d) before its cleaning; ``keep`` (n,) marks the rows that stay."""
    found = []
    for name, values in zip(features, x.T, strict=True):
        for code in missing_codes(values):
            has = values == code
            found.append(Remark(name, f"{code:g}", MISSING_VALUE, int(has.sum()), int((has & keep).sum())))
        if len(values) > _FEW and ((np.diff(values) == 1).all() or _PANDAS_INDEX.fullmatch(name)):
            found.append(Remark(name, f"{values[0]:g}, {values[1]:g}, ...", ROW_NUMBER, len(values), int(keep.sum())))
    return found


def missing_codes(values: npt.NDArray[np.float64]) -> list[float]:
    """Values of a column (n,) that look like codes for "missing", ascending.

    A code stands apart from the values beside it: a zero before the smallest value, -1 alone, or repeated sevens,
    eights and nines (-9, -99, 999, 9999) outside the rest; anything beyond 1e30 is one. Columns in which such values
    are in line with the others have none.
    """
    distinct, counts = np.unique(values, return_counts=True)
    huge = distinct[np.abs(distinct) >= _HUGE]
    rest = distinct[np.abs(distinct) < _HUGE]
    if not len(rest):
        return []
    low = _negative_codes(rest)
    high = [] if len(low) == len(rest) else _high_codes(rest[len(low) :])
    if len(high) == 1 and high[0] < 100 and counts[distinct == high[0]] == 1:
        high = []  # a single 99 is an outlier like any other
    rest = rest[len(low) : len(rest) - len(high)]
    zero = [0.0] if _zero_is_apart(rest) else []
    return sorted([*map(float, huge), *low, *zero, *high])


def _negative_codes(distinct: npt.NDArray[np.float64]) -> list[float]:
    """All negative values, if each has the form of a code and the others are not negative."""
    codes, rest = distinct[distinct < 0], distinct[distinct >= 0]
    if not len(codes) or not all(code == -1 or _is_code(-code) for code in codes) or len(rest) < 2:
        return []
    apart = len(rest) >= _FEW if codes[-1] == -1 else rest[0] - codes[-1] >= 3 * _step(rest[:_NEIGHBOURS])
    return [float(code) for code in codes] if apart else []


def _high_codes(distinct: npt.NDArray[np.float64]) -> list[float]:
    """The largest values, as far as they have the form of a code, if they lie far beyond the others."""
    first = len(distinct)
    while first > 0 and distinct[first - 1] >= 77 and _is_code(distinct[first - 1]):
        first -= 1
    codes, rest = distinct[first:], distinct[:first]
    if not len(codes) or len(rest) < 2 or codes[0] - rest[-1] < 10 * _step(rest[-_NEIGHBOURS:]):
        return []
    return [float(code) for code in codes]


def _zero_is_apart(distinct: npt.NDArray[np.float64]) -> bool:
    if len(distinct) <= _FEW or distinct[0] != 0:
        return False
    return bool(distinct[1] >= 3 * _step(distinct[1 : 1 + _NEIGHBOURS]))


def _is_code(value: float) -> bool:
    return _CODE.fullmatch(f"{value:.10g}") is not None


def _step(distinct: npt.NDArray[np.float64]) -> float:
    """The usual distance between neighbouring values."""
    return float(np.median(np.diff(distinct)))
