"""What the encoders do not see of the data, said beside the tables that rest on it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from analysis.geco.frames import TRAIN
from analysis.load import LedgerLike, records
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
    return [replace(view, findings=(*view.findings, *_own(view, lines))) for view in views]


def _own(view: View, lines: dict[str, list[str]]) -> list[str]:
    """The lines of the task whose mass accuracy the view shows; the key of such a view ends in the protocol."""
    task = view.key.rpartition("_")[0].removeprefix("mass_accuracy_")
    return list(dict.fromkeys(lines.get(task, ())))
