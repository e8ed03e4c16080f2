"""Table 3 of GECOBench: what each paradigm trains and draws, how many numbers that is, and how good its models are."""

from __future__ import annotations

import html
import json
from collections.abc import Collection

import pandas as pd
from markupsafe import Markup

from analysis.aggregate import lines
from analysis.geco.frames import TRAIN
from analysis.geco.models.predictions import MODEL, model_facts, model_keys
from analysis.geco.styles import DATASETS, PARADIGMS
from analysis.load import LedgerLike, RecordLike, records
from analysis.styles import Titles
from analysis.topic import Section
from analysis.views import GAP, View, notes_of, spread, with_titles
from geco_ray.table import bare_html, visible

GROUP = tuple(key for key in MODEL if key != "seed")
FACTS = ("trained", "redrawn", "trained_parameters", "parameters")


def paradigm_table(ledger: LedgerLike, ids: Collection[str] | None, accuracy: pd.DataFrame) -> pd.DataFrame:
    """One row per model: ``trained`` and ``redrawn`` parts by name, numbers of parameters, and its accuracies.

    ``accuracy`` is that of :func:`analysis.geco.tables.accuracy_table`. What a record does not say is null.
    """
    rows = [{**model_keys(record), **_facts(record)} for record in records(ledger, TRAIN, ids)]
    columns = [*GROUP, *FACTS]
    facts = pd.DataFrame(rows, columns=columns).drop_duplicates(list(GROUP)) if rows else pd.DataFrame(columns=columns)
    table = facts.merge(accuracy.drop(columns="seeds", errors="ignore"), on=list(GROUP), how="left")
    return table.sort_values(list(GROUP), ignore_index=True)


def _facts(record: RecordLike) -> dict[str, object]:
    facts = dict(model_facts(record))
    for name in ("trained", "redrawn"):
        parts = facts.get(name)
        facts[name] = None if parts is None else ", ".join(parts) or "nothing"
    return {name: facts.get(name) for name in FACTS}


def paradigm_views(table: pd.DataFrame, titles: Titles) -> list[View]:
    """One view per encoder and protocol: paradigms down; parts, parameters and test accuracy by data set across."""
    if table.empty:
        return []
    titled = with_titles(table, titles, ("dataset", "paradigm"))
    return [_view(str(name), part) for name, part in titled.groupby("protocol", sort=True)]


def models_section(views: list[View]) -> Section:
    """The views of :func:`paradigm_views` as a section of the report's page; there is at least one."""
    parts = [f'<h3>{_text(view.title)}</h3><div class="scroll">{bare_html(view.table)}</div>' for view in views]
    notes = [f'<p class="quiet">{_text(note)}</p>' for note in notes_of(views)]
    return Section("models", "Models", "What the paradigms train", Markup("".join([*parts, *notes])))


def _view(protocol: str, part: pd.DataFrame) -> View:
    datasets = DATASETS.in_order(part["dataset"])
    named = dict(zip(part["dataset"], part["dataset_title"], strict=True))
    several = part.groupby("paradigm")["model_settings"].nunique()
    rows = []
    for paradigm in PARADIGMS.in_order(part["paradigm"]):
        models = part[part["paradigm"] == paradigm]
        for (encoder, settings), model in models.groupby(["encoder", "model_settings"], sort=True):
            tail = f" [{_unlike(models['model_settings'], str(settings))}]" if several[paradigm] > 1 else ""
            found = {row.dataset: row for row in lines(model)}
            first = next(iter(found.values()))
            accuracies = [_accuracy(found.get(dataset)) for dataset in datasets]
            counts = (_count(first.trained_parameters), _count(first.parameters))
            parts = (first.trained or GAP, first.redrawn or GAP)
            rows.append((first.paradigm_title + tail, str(encoder), *parts, *counts, *accuracies))
    header = ("Paradigm", "encoder", "trained", "redrawn", "trained parameters", "parameters",
              *(f"{named[dataset]}, %" for dataset in datasets))  # fmt: skip
    note = (
        "Test accuracy at the epoch with the lowest validation loss: mean ± standard deviation (ddof 1) over seeds. "
        "OLA-CEA keeps the rows of its table whose words occur, so its number of parameters is that of these."
    )
    return View(f"paradigms_{protocol}", f"Paradigms, protocol {protocol}", header, tuple(rows), notes=(note,))


def _unlike(every: pd.Series, settings: str) -> str:
    own = json.loads(settings)
    others = [json.loads(text) for text in set(every)]
    return ", ".join(f"{k}={v}" for k, v in own.items() if any(other.get(k) != v for other in others))


def _accuracy(row: object) -> str:
    if row is None:
        return GAP
    mean, sd, n = (getattr(row, f"test_accuracy{end}") for end in ("", "_sd", "_n"))
    return spread(None if pd.isna(mean) else 100 * mean, None if pd.isna(sd) else 100 * sd, n, 1)


def _count(value: object) -> str:
    return GAP if value is None or pd.isna(value) else f"{int(value):,}"  # type: ignore[call-overload]


def _text(value: str) -> str:
    return html.escape(visible(value))
