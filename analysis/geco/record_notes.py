"""What the records of a grid say beside its numbers: what encoders do not see, and what a method's scores amount to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.findings import listed
from analysis.geco.frames import EXPLAIN, TRAIN
from analysis.load import LedgerLike, records
from analysis.styles import Titles
from analysis.views import View
from geco_ray.geco.audit.encoder_audit import KINDS, finding_line


def with_encoder_notes(views: Sequence[View], ledger: LedgerLike, ids: Collection[str] | None) -> list[View]:
    """The views, with a sentence for each finding of the encoders' audits under the tables of its data set.

    The audits stand in the records of the trained classifiers; records of earlier runs may have none.
    """
    lines: dict[str, list[str]] = {}
    for record in records(ledger, TRAIN, ids):
        audit: dict[str, Any] = getattr(record, "info", {}).get("encoder_audit") or {}
        for kind, count in audit.get("counts", {}).items():
            if count and kind in KINDS:
                line = finding_line(audit["task"], audit["encoder"], kind, count, audit["examples"].get(kind, ()))
                lines.setdefault(audit["task"], []).append(line)
    return [_with(view, lines.get(_task(view), ())) for view in views]


def with_method_notes(
    views: Sequence[View], ledger: LedgerLike, ids: Collection[str] | None, titles: Titles
) -> list[View]:
    """The views, with what a method said of its own scores: the models that it concerns, and the sentence.

    Guided Backprop on a network without ReLU, for instance, is the plain gradient.
    """
    models: dict[tuple[str, str], dict[tuple[str, str], list[str]]] = {}
    for record in records(ledger, EXPLAIN, ids):
        params: Mapping[str, Any] = record.params
        if note := getattr(record, "info", {}).get("note"):
            said = models.setdefault((str(params["dataset"]), str(params["protocol"])), {})
            said.setdefault((str(params["method"]), str(note)), []).append(str(params["paradigm"]))
    lines = {key: [_line(*entry, titles) for entry in said.items()] for key, said in models.items()}
    return [_with(view, lines.get((_task(view), view.key.rpartition("_")[2]), ())) for view in views]


def _line(said: tuple[str, str], paradigms: Sequence[str], titles: Titles) -> str:
    method, note = said
    models = titles.of("paradigm", paradigms)
    return f"{titles.of('method', [method])[method]} on {listed(sorted(models.values()))}: {note}"


def _with(view: View, lines: Sequence[str]) -> View:
    return replace(view, findings=(*view.findings, *dict.fromkeys(lines)))


def _task(view: View) -> str:
    """The task whose mass accuracy the view shows; the key of such a view ends in the protocol."""
    return view.key.rpartition("_")[0].removeprefix("mass_accuracy_")
