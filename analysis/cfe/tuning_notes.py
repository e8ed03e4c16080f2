"""What a reader must know of tuned values: made on another base model than the one here, or on one that is not here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from analysis.cfe.styles import METHOD_REGISTRY
from analysis.load import RecordLike
from analysis.styles import registered_entry
from geco_ray.cfe.tuning import GRIDS, tuned, tuning_warning
from geco_ray.errors import UserError

Where = tuple[str, str, str]
"""Data set, protocol, seeding."""

_TUNED_ON = 2026


def tuning_notes(records: Iterable[RecordLike], data_dir: Path | None = None) -> dict[Where, tuple[str, ...]]:
    """Sentences for the tables of a data set, protocol and seeding, from the records of its counterfactuals."""
    grouped: dict[Where, dict[str, list[RecordLike]]] = {}
    for record in records:
        params = record.params
        if params.get("method") in GRIDS and "method_options" in params:
            where = (str(params["dataset"]), str(params["protocol"]), str(params["seeding"]))
            grouped.setdefault(where, {}).setdefault(str(params["method"]), []).append(record)
    notes = {where: tuple(_notes(where, methods, data_dir)) for where, methods in grouped.items()}
    return {where: found for where, found in notes.items() if found}


def _notes(where: Where, methods: Mapping[str, list[RecordLike]], data_dir: Path | None) -> list[str]:
    dataset, protocol, seeding = where
    lines, elsewhere = [], []
    for method, found in sorted(methods.items()):
        warning = tuning_warning((record.params, record.info) for record in found)
        lines += [warning] if warning else []
        try:
            frozen = tuned(method, protocol, dataset, seeding, data_dir)
        except (UserError, KeyError):
            continue
        using = [record for record in found if _uses(record.params, frozen)]
        if using and _TUNED_ON not in {record.params["base_seed"] for record in using}:
            elsewhere.append(registered_entry(METHOD_REGISTRY, method).title)
    if elsewhere:
        lines.append(
            f"{' and '.join(elsewhere)} {'use' if len(elsewhere) > 1 else 'uses'} the values that were tuned on base "
            f"model {_TUNED_ON}, which is not one of the base models here."
        )
    return lines


def _uses(params: Mapping[str, Any], frozen: Mapping[str, float]) -> bool:
    """Whether the options of a cell are the tuned ones."""
    return bool(frozen) and frozen.items() <= dict(params["method_options"]).items()
