"""The target column: which of its texts are favourable.

Values are compared as text (:mod:`geco_ray.files.text`): ``TRUE``, ``01``, ``None`` and ``NA`` are what they are. A
card's value that occurs nowhere as text may still mean the same truth value or number (``True`` for ``TRUE``, ``1`` for
``01``); it is taken so where that leaves one reading, and the reading is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from geco_ray.cfe.data.remarks import MISSING_TEXTS, MISSING_VALUE, Remark
from geco_ray.errors import UserError, suggest
from geco_ray.files.text import compare_key

if TYPE_CHECKING:
    import numpy.typing as npt

    from geco_ray.cfe.data.cards import Card
    from geco_ray.cfe.data.csv_lines import CsvRows

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""A decimal number as tables write it."""


def read_labels(table: CsvRows, position: int, card: Card) -> tuple[npt.NDArray[np.int64], list[Remark]]:
    """The column at ``position`` as 1 (favourable) and 0 (adverse), int64 (n,), and what a reader should know of it.

    Raises:
        UserError: an empty or unlisted value with its line; a favourable value that never occurs, or could be several.
    """
    keys = [compare_key(cell) for cell in table.column(position)]
    for row, key in enumerate(keys):
        if not key:
            raise UserError(f"missing value in the target {card.target!r}", where=table.where(row, position))
    present = sorted(set(keys))
    taken = {compare_key(value) for value in (*card.favourable, *card.adverse)} & set(present)
    remarks: list[Remark] = []
    favourable, adverse = set[str](), set[str]()
    for value, side in [*((v, favourable) for v in card.favourable), *((v, adverse) for v in card.adverse)]:
        meant = _meant(value, present, taken, card, str(table.path))
        if meant is None and side is favourable:
            raise UserError(
                f"favourable value {value!r} never occurs in the target {card.target!r}",
                where=str(table.path),
                remedy=suggest(value, present[:20]),
            )
        if meant is not None:
            side.add(meant)
            if meant != compare_key(value):
                remarks.append(_remark(card, meant, f"the card's {value!r}", keys))
    known = favourable | (adverse if card.adverse else _other(present, favourable, table, card))
    strange = next((row for row, key in enumerate(keys) if key not in known), None)
    if strange is not None:
        raise UserError(
            f"unknown value in the target {card.target!r}",
            where=table.where(strange, position),
            found=keys[strange],
            expected="one of " + ", ".join(sorted(known)),
            remedy="List it in the card under 'favourable' or 'adverse'.",
        )
    remarks += [_remark(card, key, MISSING_VALUE, keys) for key in present if key in MISSING_TEXTS]
    return np.array([key in favourable for key in keys], dtype=np.int64), remarks


def _remark(card: Card, value: str, reading: str, keys: Sequence[str]) -> Remark:
    rows = keys.count(value)
    return Remark(card.target, value, reading, rows, rows, target=True)


def _meant(value: str, present: Iterable[str], taken: set[str], card: Card, where: str) -> str | None:
    """The text of the column that a card's value means: itself, else the only one of the same truth value or number."""
    key = compare_key(value)
    if key in taken:
        return key
    wanted = _as_value(key)
    if wanted is None:
        return None
    alike = [text for text in present if text not in taken and _as_value(text) == wanted]
    if len(alike) > 1:
        raise UserError(
            f"{value!r} could be several values of the target {card.target!r}",
            where=where,
            found=alike,
            remedy="Write in the card, in quotes, each as the table has it.",
        )
    return alike[0] if alike else None


def _as_value(text: str) -> tuple[str, float] | None:
    if text.casefold() in ("true", "false"):
        return "truth", float(text.casefold() == "true")
    return ("number", float(text)) if NUMBER.fullmatch(text) else None


def _other(present: list[str], favourable: set[str], table: CsvRows, card: Card) -> set[str]:
    others = [text for text in present if text not in favourable]
    if len(others) > 1:
        raise UserError(
            f"the target {card.target!r} has several values that are not favourable",
            where=str(table.path),
            found=others[:10],
            remedy="List the adverse ones in the card under 'adverse'.",
        )
    return set(others)
