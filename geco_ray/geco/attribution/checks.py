"""What a method returned, held row by row to what was asked, before anything is made of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from geco_ray.errors import UserError
from geco_ray.geco.attribution.base import AttributionInputs, FloatArray, Scores
from geco_ray.geco.scored import NON_FINITE_ATTRIBUTION


def check_scores(method: str, inputs: AttributionInputs, scores: Scores) -> tuple[list[FloatArray], list[str | None]]:
    """One array per row and, per row, why it is null: a finite one has no reason.

    A row that the method left out, with its reason, or that is not finite comes back as NaN of the right length.

    Raises:
        UserError: another number of rows, another length of a row, values that are no numbers, or a row that is left
            out without a reason; the error names method and test row.
    """
    name, count = f"attribution method {method!r}", len(inputs.rows)
    _check_number(name, "attributions", scores.values, count)
    reasons: Sequence[str | None] = [None] * count if scores.reasons is None else scores.reasons
    for what, column in (
        ("reasons", reasons),
        ("completeness gaps", scores.completeness_gap),
        ("explained changes", scores.explained_change),
        ("numbers of steps", scores.steps),
    ):
        if column is not None:
            _check_number(name, what, column, count)
    values: list[FloatArray] = []
    why: list[str | None] = []
    for row, sentence, value, reason in zip(inputs.rows, inputs.sentences, scores.values, reasons, strict=True):
        length = len(sentence) if scores.unit == "token" else sentence.word_count
        array = _row(name, row, scores.unit, value, reason, length)
        finite = bool(np.isfinite(array).all()) and reason is None
        values.append(array if finite else np.full(length, np.nan))
        why.append(None if finite else reason or NON_FINITE_ATTRIBUTION)
    return values, why


def _check_number(name: str, what: str, values: Sequence[object] | npt.NDArray[np.generic], count: int) -> None:
    if len(values) != count:
        raise UserError(
            f"{name} returned another number of {what} than there are rows",
            found=len(values),
            expected=f"{count}",
            remedy="Return one per row of the inputs, in their order",
        )


def _row(name: str, row: int, unit: str, value: object, reason: str | None, length: int) -> FloatArray:
    """The row's values as numbers, NaN for a row left out with a reason."""
    where = f"test row {row}"
    if value is None:
        if reason is None:
            raise UserError(f"{name} returned no attribution and no reason", where=where, remedy="Give one of them")
        return np.full(length, np.nan)
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{name} returned values that are no real numbers", where=where, found=value) from None
    if array.shape != (length,):
        special = ", special tokens included" if unit == "token" else ""
        raise UserError(
            f"{name} returned an attribution of the wrong length",
            where=where,
            found=array.shape,
            expected=f"one number per {unit} of the sentence{special}: ({length},)",
            remedy="Check the order of the rows, and the unit that the scores say",
        )
    return array
