"""What of a grid is not there: cells that failed or are left, by what they are about, each with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analysis.styles import Titles
from analysis.views import View
from geco_ray.cells import Cell
from geco_ray.errors import StorageError
from geco_ray.table import amount

_LONGEST = 160


@dataclass
class Group:
    """The planned cells of one stage, data set and name: how many, how many are done, and why others failed."""

    planned: int = 0
    done: int = 0
    failed: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    seeds: set[str] = field(default_factory=set)

    @property
    def left(self) -> int:
        """Cells that nobody has tried, or that wait for another."""
        return self.planned - self.done - self.failed


def groups(ledger: Any, cells: Iterable[Cell]) -> dict[tuple[str, str, str], Group]:
    """(stage, data set, name) to its group, in the order of the cells; the name is a method, paradigm, family or empty.

    A failed cell counts as failed until it is done. ``seeds`` are those of cells that are not done.
    """
    found: dict[tuple[str, str, str], Group] = {}
    done: dict[str, Collection[str]] = {}
    failed: dict[str, Mapping[str, Mapping[str, Any]]] = {}
    for cell in cells:
        if cell.stage not in done:
            done[cell.stage] = {record.id for record in ledger.records(cell.stage)}
            failed[cell.stage] = _failures(ledger, cell.stage)
        params = cell.params()
        name = params.get("method") or params.get("paradigm") or params.get("family") or ""
        group = found.setdefault((cell.stage, str(params.get("dataset", "")), str(name)), Group())
        group.planned += 1
        if cell.id in done[cell.stage]:
            group.done += 1
            continue
        group.seeds |= {str(value) for key, value in params.items() if key.endswith("seed")}
        if cell.id in failed[cell.stage]:
            group.failed += 1
            group.errors[_first_line(failed[cell.stage][cell.id].get("error"))] += 1
    return found


def missing_view(found: Mapping[tuple[str, str, str], Group], titles: Sequence[Titles]) -> View | None:
    """The groups that lack cells as a table; None where nothing is missing."""
    rows = []
    for (stage, dataset, name), group in found.items():
        if group.done == group.planned:
            continue
        counts = (group.planned, group.done, group.failed, group.left)
        rows.append((_titled(titles, name, ("method", "paradigm", "family")) or "base model",
                     _titled(titles, dataset, ("dataset",)), stage, *map(str, counts),
                     ", ".join(sorted(group.seeds)), _reason(group)))  # fmt: skip
    if not rows:
        return None
    header = ("What", "Data set", "Stage", "Planned", "Done", "Failed", "Left", "Seeds", "Why")
    lacking = sum(group.planned - group.done for group in found.values())
    total = sum(group.planned for group in found.values())
    cells = amount(total, "planned cell", "planned cells")
    text = f"{lacking:,} of {cells} have no result; nothing is filled in for them."
    return View("missing", "What is missing", header, tuple(rows), (text,))


def _reason(group: Group) -> str:
    if group.errors:
        error, count = group.errors.most_common(1)[0]
        return f"{error} ({count} of {group.failed} failures)" if count < group.failed else error
    return "not yet computed, or waits for a cell that is not done"


def _titled(titles: Sequence[Titles], name: str, kinds: Sequence[str]) -> str:
    """The title of ``name`` among the first kinds that know one."""
    for each in titles:
        for names in each.names:
            if names.kind in kinds and (title := each.of(names.kind, [name])[name]) != name:
                return title
    return name


def _failures(ledger: Any, stage: Any) -> Mapping[str, Mapping[str, Any]]:
    try:
        found: Mapping[str, Mapping[str, Any]] = ledger.failures(stage)
    except (AttributeError, StorageError):  # a ledger that keeps none, or whose folder cannot be read
        return {}
    return found


def _first_line(error: object) -> str:
    line = str(error or "no reason recorded").strip().splitlines()[0]
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
