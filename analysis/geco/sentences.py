"""Single test sentences with their words coloured by attribution and the marked words underlined."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.aggregate import lines
from analysis.geco.frames import EXPLAIN, attributions
from analysis.geco.labels import with_labels
from analysis.geco.styles import DATASETS, TITLES
from analysis.load import LedgerLike, records
from analysis.styles import Titles
from analysis.views import ordered, title_of

LONGEST = 22  # words; longer sentences are hard to compare by eye
SHORTEST = 6


@dataclass(frozen=True)
class Word:
    """One word: whether it is marked as decisive, its share of the attribution, and how deep it is coloured (0-1)."""

    text: str
    marked: bool
    share: float
    depth: float


@dataclass(frozen=True)
class Line:
    """One method's attribution of a sentence; ``mass`` is its mass accuracy, null for an attribution of zeros."""

    method: str
    words: tuple[Word, ...]
    mass: float | None


@dataclass(frozen=True)
class Example:
    """One test sentence as a model's explanations see it; ``dataset`` is the title of its data set."""

    dataset: str
    protocol: str
    row: int
    sentence_idx: int
    seed: str
    models: tuple[tuple[str, bool, tuple[Line, ...]], ...]  # model, whether it classified the sentence correctly

    @property
    def heading(self) -> str:
        """Where the sentence is from, for people."""
        where = f"{self.dataset}, protocol {self.protocol}"
        return f"{where}: source sentence {self.sentence_idx}, test row {self.row}, seed {self.seed}"


def examples(
    ledger: LedgerLike,
    ids: Collection[str] | None,
    score: pd.DataFrame,
    per_dataset: int = 3,
    titles: Titles = TITLES,
) -> list[Example]:
    """Up to ``per_dataset`` sentences of each dataset and protocol, chosen by rule (see :func:`choose`)."""
    found = []
    for dataset in DATASETS.in_order(score["dataset"]):
        for protocol in sorted(set(score.loc[score["dataset"] == dataset, "protocol"])):
            part = score[(score["dataset"] == dataset) & (score["protocol"] == protocol)]
            rows = choose(ledger, ids, dataset, protocol, part, per_dataset)
            if rows:
                found += _examples(ledger, ids, dataset, protocol, rows, titles)
    return found


def choose(
    ledger: LedgerLike, ids: Collection[str] | None, dataset: str, protocol: str, score: pd.DataFrame, count: int
) -> list[int]:
    """Test rows to show: of readable length with a marked word, those that most models classify correctly, first
    rows first, no source sentence twice.
    """
    here = [
        record
        for record in records(ledger, EXPLAIN, ids)
        if record.params.get("dataset") == dataset and record.params.get("protocol") == protocol
    ]
    if not here:
        return []
    table = ledger.table(here[0]).select(["row", "sentence_idx", "truth"]).to_pandas()
    sizes, marks = table["truth"].map(len), table["truth"].map(sum)
    fit = table[(sizes >= SHORTEST) & (sizes <= LONGEST) & (marks > 0)]
    fit = table[marks > 0] if fit.empty else fit
    right = score.groupby("row", sort=True)["correct"].apply(lambda values: float(np.mean(values.astype("float64"))))
    fit = fit.assign(right=fit["row"].map(right).fillna(0.0)).sort_values(["right", "row"], ascending=[False, True])
    return [int(row) for row in fit.drop_duplicates("sentence_idx")["row"].head(count)]


def _examples(
    ledger: LedgerLike,
    ids: Collection[str] | None,
    dataset: str,
    protocol: str,
    rows: list[int],
    titles: Titles,
) -> list[Example]:
    def here(params: Mapping[str, Any]) -> bool:
        return params.get("dataset") == dataset and params.get("protocol") == protocol

    seeds = {record.params.get("seed") for record in records(ledger, EXPLAIN, ids) if here(record.params)}
    numbered = [seed for seed in seeds if seed is not None]
    first = min(numbered) if numbered else None
    table = attributions(ledger, ids, lambda params: here(params) and params.get("seed") in (first, None), rows)
    labelled = with_labels(table, titles)
    found = []
    for row in rows:
        part = labelled[labelled["row"] == row]
        if not part.empty:
            index = int(part["sentence_idx"].iloc[0])
            seed = "–" if first is None else str(first)
            title = title_of(part, "dataset", dataset)
            found.append(Example(title, protocol, row, index, seed, tuple(_models(part))))
    return found


def _models(part: pd.DataFrame) -> list[tuple[str, bool, tuple[Line, ...]]]:
    found = []
    for model in ordered(part, "paradigm", "model_label"):
        own = part[part["model_label"] == model]
        by_method = {row.method_label: row for row in lines(own)}
        methods = ordered(own, "method", "method_label")
        shown = tuple(_line(method, by_method[method]) for method in methods)
        found.append((model, bool(own["correct"].iloc[0]), shown))
    return found


def _line(method: str, row: Any) -> Line:
    size = np.abs(np.asarray(row.attribution, dtype=np.float64))
    marked = np.asarray(row.truth, dtype=bool)
    total, top = float(size.sum()), float(size.max(initial=0.0))
    shares = size / total if total > 0 else size
    depths = size / top if top > 0 else size
    words = tuple(
        Word(str(text), bool(mark), float(share), float(depth))
        for text, mark, share, depth in zip(row.words, marked, shares, depths, strict=True)
    )
    return Line(method, words, float(shares[marked].sum()) if total > 0 and marked.any() else None)
