"""With what the cells of a page were computed: versions, machines, times, and what identifies their data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analysis.load import RecordLike
from analysis.topic import Numbers
from analysis.views import View
from geco_ray.table import amount

_FACTS = {
    "geco_ray": "geco_ray", "python": "Python", "host": "Host", "machine": "Architecture", "device": "Device",
    "gpu": "GPU", "precision": "Precision", "arithmetic": "Kernels",
}  # fmt: skip
_HASHES = {"data": "data", "encoder_fingerprint": "encoder"}


def provenance_view(grid: str, numbers: Sequence[Numbers[Any]]) -> View | None:
    """A row per fact, with how many cells it holds for; None where no record says anything."""
    records = [record for each in numbers for record in each.records()]
    infos = [info for each in numbers for info in each.infos() if info]
    if not infos:
        return None
    rows = [("Command", f"geco-ray run {grid}", "")]
    for key, title in _FACTS.items():
        rows += _counted(title, (info[key] for info in infos if info.get(key)))
    packages = ((name, version) for info in infos for name, version in info.get("packages", {}).items())
    rows += [
        (f"{name} (package)", version, f"{count:,}") for (name, version), count in sorted(Counter(packages).items())
    ]
    rows += _times(infos)
    rows += _hashes(records)
    note = (
        "The command is that of the grid; overrides and options of a run are not recorded. Hashes are the first 16 "
        "digits of what identifies the prepared data or the encoder's weights. Seconds are summed over cells."
    )
    return View("provenance", "Provenance", ("What", "Value", "Cells"), tuple(rows), notes=(note,))


def _counted(title: str, values: Iterable[object]) -> list[tuple[str, str, str]]:
    return [(title, value, f"{count:,}") for value, count in sorted(Counter(map(str, values)).items())]


def _times(infos: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    finished = sorted(str(info["finished"]) for info in infos if info.get("finished"))
    rows = []
    if finished:
        rows = [("First cell finished", finished[0], ""), ("Last cell finished", finished[-1], "")]
    for key, title in (("seconds", "Wall time"), ("cpu_seconds", "CPU time")):
        known = [float(info[key]) for info in infos if info.get(key) is not None]
        if known:
            rows.append((title, amount(round(sum(known)), "second", "seconds"), f"{len(known):,}"))
    return rows


def _hashes(records: Sequence[RecordLike]) -> list[tuple[str, str, str]]:
    found = Counter(
        (kind, str(record.params.get("dataset" if key == "data" else "encoder")), str(record.params[key])[:16])
        for record in records
        for key, kind in _HASHES.items()
        if record.params.get(key)
    )
    return [(f"Hash of {kind} {name}", value, f"{count:,}") for (kind, name, value), count in sorted(found.items())]
