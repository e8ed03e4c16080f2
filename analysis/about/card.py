"""The card at the top of a page: what was run, and how much of it is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.missing import Group
from analysis.topic import Numbers
from analysis.views import View

_PLURALS = {"dataset": "Data sets", "method": "Methods", "paradigm": "Paradigms", "family": "Change families"}
_WIDE = 12  # names; more are counted


def card(numbers: Sequence[Numbers[Any]], found: Mapping[tuple[str, str, str], Group]) -> list[tuple[str, str]]:
    """Names and values: cells, then for each benchmark what its cells are about."""
    lines = [("Cells", _cells(found))] if found else []
    for each in numbers:
        params = [record.params for record in each.records()]
        for names in each.topic.names:
            used = {str(own[names.kind]) for own in params if own.get(names.kind)}
            if used:
                titles = each.titles.of(names.kind, used)
                ordered = [titles[name] for name in names.in_order(used)]
                text = ", ".join(ordered) if len(ordered) <= _WIDE else f"{len(ordered)}"
                lines.append((_PLURALS.get(names.kind, names.kind), text))
        seeds = {str(own[key]) for own in params for key in ("seed", "base_seed") if own.get(key) is not None}
        if seeds:
            lines.append(("Seeds", ", ".join(sorted(seeds, key=lambda seed: (len(seed), seed)))))
    return lines


def _cells(found: Mapping[tuple[str, str, str], Group]) -> str:
    planned, done, failed, left = (sum(getattr(group, name) for group in found.values()) for name in _COUNTS)
    return f"{done:,} of {planned:,} done, {failed:,} failed, {left:,} left"


_COUNTS = ("planned", "done", "failed", "left")


def cells_view(found: Mapping[tuple[str, str, str], Group]) -> View | None:
    """Planned, done, failed and left cells by stage; None where no plan is known."""
    stages: dict[str, list[int]] = {}
    for (stage, _, _), group in found.items():
        counts = stages.setdefault(stage, [0] * len(_COUNTS))
        for place, name in enumerate(_COUNTS):
            counts[place] += getattr(group, name)
    if not stages:
        return None
    rows = tuple((stage, *(f"{count:,}" for count in counts)) for stage, counts in stages.items())
    note = "Where cells failed or are left, the first table says which and why."
    return View("cells", "Cells by stage", ("Stage", "Planned", "Done", "Failed", "Left"), rows, notes=(note,))
