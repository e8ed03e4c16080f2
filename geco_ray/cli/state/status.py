"""What ``geco-ray status`` shows of a grid, from the run folder alone: the driver is never asked."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from geco_ray.cli.check import show_unneeded, unneeded
from geco_ray.cli.console import json_rows, plan_table
from geco_ray.cli.output import PlainConsole, labelled
from geco_ray.cli.state.failures import failed_cells, place_of
from geco_ray.ledger import Ledger, Record
from geco_ray.plan.costs import duration, expected_seconds, measured, shipped
from geco_ray.plan.remaining import Plan

WINDOW = 600.0
"""Seconds: the pace of a run is judged by the cells that finished within them."""


@dataclass(frozen=True)
class Pace:
    """How fast a run goes.

    Attributes:
        finished: cells of the grid that finished within the window. per_minute: of them.
        seconds_left: what is left at this speed; None where nothing finished, or nothing like what is left is known.
    """

    finished: int
    per_minute: float
    seconds_left: float | None

    def words(self) -> str:
        """The same for people."""
        if not self.finished:
            return f"no cell has finished within {duration(WINDOW)}"
        left = "" if self.seconds_left is None else f", about {duration(self.seconds_left)} left"
        return f"{self.per_minute:,.1f} cells a minute{left}"


def pace(plan: Plan, now: float | None = None) -> Pace:
    """The pace of the last minutes, weighed by what cells take: from the records' times."""
    moment = time.time() if now is None else now
    ages = ((moment - _finished(record.info), record) for record in _records(plan))
    recent = [(age, record) for age, record in ages if 0 <= age <= WINDOW]
    if not recent:
        return Pace(0, 0.0, None)
    window = max(60.0, max(age for age, _ in recent))
    worked = sum(float(record.info.get("cpu_seconds", record.info.get("seconds", 0))) for _, record in recent)
    on_cpus = all(str(record.info.get("device", "cpu")) == "cpu" for _, record in recent)
    left = None  # a GPU's seconds say nothing of what cells take on a core
    if worked > 0 and on_cpus:
        waiting = [cell for stage in plan.stages for cell in stage.left]
        left = sum(expected_seconds(waiting, measured(_records(plan)), shipped()).values()) * window / worked
    return Pace(len(recent), 60 * len(recent) / window, left)


def _records(plan: Plan) -> Iterator[Record]:
    return (record for stage in plan.stages for record in stage.records)  # one by one: they may be a million


def _finished(info: dict[str, Any]) -> float:
    """When a cell was finished, in seconds since 1970; never, where the record does not say."""
    try:
        return datetime.fromisoformat(str(info["finished"])).astimezone(UTC).timestamp()
    except (KeyError, ValueError):
        return float("-inf")


def show_failed(failed: dict[str, dict[str, Any]], command: str, out: PlainConsole) -> None:
    """One line for each fault, with the first of its cells, and the command that shows them whole."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for title, entry in failed.items():
        groups[str(entry["error"]), place_of(entry)].append(title)
    for (error, _), titles in groups.items():
        more = f" (and {len(titles) - 1:,} more of the same)" if len(titles) > 1 else ""
        out.print(labelled("failed", "red", f"{titles[0]}: {error}{more}"), soft_wrap=True)
    if failed:
        out.print(f"`{command}` shows each fault with its traceback", soft_wrap=True)


def document(plan: Plan, ledger: Ledger, holder: tuple[str, int] | None) -> dict[str, Any]:
    """A grid's state as JSON; docs/json.md describes its keys."""
    running = None
    if holder:
        going = pace(plan)
        running = {"host": holder[0], "pid": holder[1], "cells_per_minute": going.per_minute}
        running |= {"seconds_left": going.seconds_left}
    errors = {title: entry["error"] for title, entry in failed_cells(plan, ledger).items()}
    counts = {"left": plan.left, "cells": plan.total, "unneeded_checkpoints": unneeded(plan, ledger)}
    return {"stages": json_rows(plan), "failures": errors, "running": running} | counts


def show(plan: Plan, ledger: Ledger, holder: tuple[str, int] | None, see: str, out: PlainConsole) -> None:
    """The same for people; ``see`` is the command that shows failures whole."""
    out.print(plan_table([stage.row() for stage in plan.stages], always_why=True))
    show_failed(failed_cells(plan, ledger), see, out)
    show_unneeded(plan, ledger, out)
    if holder:
        going = pace(plan).words()
        out.print(f"running: process {holder[1]} on {holder[0]} holds the lease; {going}", soft_wrap=True)
    out.print(f"{plan.left:,} of {plan.total:,} cells left")
