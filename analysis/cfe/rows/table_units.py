"""In which units a data set's counterfactuals are shown, and whether its rows may be shown at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from analysis.load import RecordLike
from geco_ray.cfe.data.units import Units
from geco_ray.errors import UserError


@dataclass(frozen=True)
class Shown:
    """What is known of a data set's table; ``units`` is None where only standardised values are known.

    ``hidden`` says why rows are not shown, and is empty where they are.
    """

    units: Units | None
    hidden: str = ""


def shown(dataset: str, data: str, records: Iterable[RecordLike], data_dir: Path | None, person_rows: bool) -> Shown:
    """From the card here, the record of a base model of the same ``data`` (fingerprint), else from the table here.

    A card on this machine decides whether rows are shown; without one the record does, and without both none is.
    """
    units = _recorded(dataset, data, records)
    allowed = _allowed(dataset, data_dir)
    allowed = units.show_rows if allowed is None and units is not None else allowed
    if not person_rows:
        return Shown(units, "left out as asked (--no-rows)")
    if allowed is None:
        return Shown(units, "not shown: no card says whether rows of the table may be shown")
    if not allowed:
        return Shown(units, "not shown: its card says that rows of the table may not be shown (show_rows: false)")
    return Shown(units or _loaded(dataset, data, data_dir))


def _recorded(dataset: str, data: str, records: Iterable[RecordLike]) -> Units | None:
    for record in records:
        values = getattr(record, "info", {}).get("units")
        if values and record.params.get("dataset") == dataset and record.params.get("data") == data:
            return Units.from_record(values)
    return None


def _allowed(dataset: str, data_dir: Path | None) -> bool | None:
    from geco_ray.cfe.data.datasets import dataset_card

    try:
        return dataset_card(dataset, data_dir).show_rows
    except UserError:  # no card of that name here, or one that cannot be read
        return None


def _loaded(dataset: str, data: str, data_dir: Path | None) -> Units | None:
    """Of a run folder whose records are older than this: from the table, if it is here and still the same."""
    from geco_ray.cfe.data.datasets import dataset_fingerprint, load_dataset

    try:
        if dataset_fingerprint(dataset, data_dir) == data:
            return Units.of(load_dataset(dataset, data_dir))
    except (UserError, OSError):
        pass
    return None
