"""What the checks of the paper's claims read and give, and how their numbers are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from verdicts import Value, Verdict


@dataclass
class Results:
    """What the checks read: the report's tables of a whole run, and what was measured beside it.

    Attributes:
        table: Table 6. by_seed: the same per base model. families, families_by_seed, overlap, changes: the report's.
        ranks: the report's ranks with Kendall's W. radii: APΔS' radius by data set and base seed.
        descriptors: hard disagreement per family, data set and base seed, in percent.
        diagnostic: claim 19's, one row per base model, or None. constants: what the code's options say.
    """

    table: pd.DataFrame
    by_seed: pd.DataFrame
    families: pd.DataFrame
    families_by_seed: pd.DataFrame
    overlap: pd.DataFrame
    changes: pd.DataFrame
    ranks: pd.DataFrame
    radii: pd.DataFrame
    descriptors: pd.DataFrame
    diagnostic: pd.DataFrame | None = None
    constants: dict[str, float] = field(default_factory=dict)

    def row(self, dataset: str, method: str) -> Any:
        """A method's row of Table 6."""
        return self.table.query("dataset == @dataset and method == @method").iloc[0]

    def cell(self, dataset: str, method: str, family: str) -> tuple[float, float]:
        """Empirical robustness of a cell in percent, and its standard deviation over base models."""
        part = self.families.query("dataset == @dataset and method == @method and family == @family").iloc[0]
        return 100 * float(part["empirical_robustness"]), 100 * float(part["empirical_robustness_sd"])

    def smallest(self, *methods: str) -> float:
        """Smallest cell of methods over data sets and families, in percent."""
        return 100 * float(self.families[self.families["method"].isin(methods)]["empirical_robustness"].min())


@dataclass(frozen=True)
class Check:
    """One line of the page: number, claim, the paper's words or numbers, ours, and the verdict."""

    number: int
    claim: str
    paper: str
    here: str
    verdict: Verdict


def rate(paper: str, row: Any, name: str) -> Value:
    """A rate of Table 6 in percent, with its standard deviation over base models."""
    return Value(paper, 100 * float(row[name]), 100 * float(row[f"{name}_sd"]))


def distance(paper: str, row: Any) -> Value:
    """A distance of Table 6."""
    return Value(paper, float(row["distance"]), float(row["distance_sd"]), relative=True)


def spread(value: Value, digits: int = 1) -> str:
    """Ours with its standard deviation."""
    return f"{value.ours:.{digits}f}" + (f" ± {value.sd:.{digits}f}" if value.sd is not None else "")


def line(values: Sequence[Value], between: str = " / ", digits: int = 1) -> str:
    """Several of ours."""
    return between.join(spread(value, digits) for value in values)
