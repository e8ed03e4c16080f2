"""The one rule by which a number of ours counts as the paper's, and how a verdict is written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

POINTS = 1.5
"""Largest difference, in the unit of the number's last but one printed digit: points for rates in percent."""

RULE = (
    "A number is *reproduced* when it equals the paper's at the paper's printed digits, or when it lies within one "
    f"standard deviation over base models and within {POINTS} points (of a distance or radius: {POINTS} %). Bounds are "
    "rounded as the paper prints them. Else it is *not reproduced*, with how far it is off. *Not tellable*: the data "
    "cannot decide, or the paper prints nothing to hold them against. *Not run*: a measurement is missing."
)
REPRODUCED, NOT_REPRODUCED, NOT_TELLABLE, NOT_RUN = "reproduced", "not reproduced", "not tellable", "not run"


@dataclass(frozen=True)
class Value:
    """A number of the paper beside ours.

    Attributes:
        paper: as printed, a text, so that its digits are known. ours: in the same unit. sd: ours over base models, None
            where there is none. relative: a distance or radius, whose difference is taken in percent of the paper's.
    """

    paper: str
    ours: float
    sd: float | None = None
    relative: bool = False

    @property
    def digits(self) -> int:
        """Digits that the paper prints behind the point."""
        return len(self.paper.partition(".")[2])

    @property
    def difference(self) -> float:
        """In points, or in percent of the paper's value."""
        gap = self.ours - float(self.paper)
        return 100 * gap / float(self.paper) if self.relative else gap

    @property
    def holds(self) -> bool:
        """Whether the number is reproduced by :data:`RULE`."""
        if math.isnan(self.ours):
            return False
        if round_half_up(self.ours, self.digits) == float(self.paper):
            return True
        within = self.sd is not None and abs(self.ours - float(self.paper)) <= self.sd
        return within and abs(self.difference) <= POINTS

    def off(self) -> str:
        """How far it is off, in words."""
        unit = "%" if self.relative else "points"
        text = f"{self.difference:+.2f} {unit}"
        if self.sd:
            text += f", {abs(self.ours - float(self.paper)) / self.sd:.1f} standard deviations"
        return text


@dataclass(frozen=True)
class Verdict:
    """What became of a claim: the word, and why where it is not plain."""

    word: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.word}: {self.why}" if self.why else self.word


def judge(values: Sequence[Value]) -> Verdict:
    """The verdict over all numbers of a claim: every one must hold."""
    failed = [value for value in values if not value.holds]
    if not failed:
        return Verdict(REPRODUCED)
    return Verdict(NOT_REPRODUCED, "; ".join(f"{value.ours:.4g} for {value.paper} ({value.off()})" for value in failed))


def judge_bound(bound: str, ours: float, *, strict: bool = False) -> Verdict:
    """The verdict over "at least ``bound``" (``strict``: "above"), ours rounded to the bound's digits."""
    digits = len(bound.partition(".")[2])
    rounded = round_half_up(ours, digits)
    if ours > float(bound) or (not strict and rounded >= float(bound)):
        return Verdict(REPRODUCED)
    return Verdict(NOT_REPRODUCED, f"{ours:.2f}, {float(bound) - ours:.2f} below the bound")


def judge_true(holds: bool, why: str = "") -> Verdict:
    """The verdict over a statement."""
    return Verdict(REPRODUCED) if holds else Verdict(NOT_REPRODUCED, why)


def round_half_up(value: float, digits: int) -> float:
    """Rounding as people print numbers; Python's own rounds halves to even."""
    scale = 10.0**digits
    return math.floor(abs(value) * scale + 0.5) / scale * (1 if value >= 0 else -1)
