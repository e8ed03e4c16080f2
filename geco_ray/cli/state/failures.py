"""The cells of a grid that failed, those of one fault together, each fault with one traceback to read."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any

from rich.console import Console

from geco_ray.ledger import Ledger
from geco_ray.plan.remaining import Plan
from geco_ray.table import amount

_LISTED = 10  # cells of one fault that are named; a JSON answer names all
_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>\S+)', re.MULTILINE)


def failed_cells(plan: Plan, ledger: Ledger) -> dict[str, dict[str, Any]]:
    """Title to the last failed attempt (error, traceback, host, attempts) of the cells that are left."""
    found = {}
    for stage in plan.stages:
        entries = ledger.failures(stage.stage.name)
        for cell in stage.left:
            if cell.id in entries:
                found[cell.title] = entries[cell.id] | {"stage": cell.stage, "id": cell.id}
    return found


def show_failures(failed: dict[str, dict[str, Any]], ledger: Ledger, out: Console, as_json: bool) -> None:
    """Print the failures, by kind of error and place in the code, those with most cells first."""
    if as_json:
        out.print_json(json.dumps(failed))
        return
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for title, entry in failed.items():
        groups[_kind(entry), place_of(entry)].append(title)
    for (kind, place), titles in sorted(groups.items(), key=lambda group: -len(group[1])):
        first = failed[titles[0]]
        out.print(f"{amount(len(titles), 'cell', 'cells')}: {kind}{f' at {place}' if place else ''}", soft_wrap=True)
        for title in titles[:_LISTED]:
            tries, host = failed[title].get("attempts", "?"), failed[title].get("host", "an unknown host")
            out.print(f"  {title} (attempts: {tries}, the last on {host})", soft_wrap=True)
        if len(titles) > _LISTED:
            out.print(f"  and {len(titles) - _LISTED:,} more (--json names all)")
        out.print(f"  all of the first: {ledger.root}/failures/{first['stage']}/{first['id']}.json", soft_wrap=True)
        out.print(str(first.get("traceback", first["error"])).rstrip(), soft_wrap=True)
    out.print(f"{amount(len(failed), 'cell', 'cells')} failed")


def _kind(entry: dict[str, Any]) -> str:
    return str(entry["error"]).partition(":")[0]


def place_of(entry: dict[str, Any]) -> str:
    """The innermost line of a traceback."""
    frames = list(_FRAME.finditer(str(entry.get("traceback", ""))))
    return f"{frames[-1]['file']}:{frames[-1]['line']} in {frames[-1]['name']}" if frames else ""
