"""What a grid asks for, what is done, and what is left, with the reason of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from geco_ray.cells import Cell
from geco_ray.ledger import Ledger
from geco_ray.ledger.record import Record
from geco_ray.plan.benchmark import DEFAULT_PACK, Stage, stages
from geco_ray.plan.expand import packs
from geco_ray.table import amount


@dataclass(frozen=True)
class StagePlan:
    """One stage of a grid.

    Attributes:
        stage: what it is called and runs as. cells: all cells. left: those not done.
        reasons: id to ``not started``, ``failed before`` or ``damaged``.
        trials: Ray Tune trials that the whole stage is (0 for stages that run on actors or in the driver).
        records: of the stage's finished cells in this run folder, of other grids too; decoded when they are looked at.
        replaced: component to how many of the cells left are there as another version of it made them.
    """

    stage: Stage
    cells: tuple[Cell, ...]
    left: tuple[Cell, ...]
    reasons: dict[str, str]
    trials: int
    replaced: Counter[str] = field(default_factory=Counter)
    records: Collection[Record] = field(default=(), repr=False, compare=False)

    def row(self) -> dict[str, Any]:
        """The stage as one row of a table."""
        reasons = Counter(self.reasons.values())
        kinds = Counter(cell.KIND for cell in self.cells if cell.KIND)
        return {
            "stage": self.stage.name,
            "cells": len(self.cells),
            "of which": ", ".join(f"{n:,} {kind}" for kind, n in kinds.items()),
            "trials": self.trials,
            "runs as": self.stage.runs_as,
            "done": len(self.cells) - len(self.left),
            "left": len(self.left),
            "why": ", ".join(f"{n:,} {reason}" for reason, n in sorted(reasons.items())),
        }


@dataclass(frozen=True)
class Plan:
    """All stages of a grid that have cells, in the order they run."""

    stages: tuple[StagePlan, ...]

    @property
    def left(self) -> int:
        return sum(len(stage.left) for stage in self.stages)

    @property
    def total(self) -> int:
        return sum(len(stage.cells) for stage in self.stages)

    def version_lines(self) -> list[str]:
        """For each component from outside of which another version made cells of this grid, one sentence."""
        found: Counter[str] = Counter()
        for stage in self.stages:
            found.update(stage.replaced)
        return [
            f"{amount(count, 'cell was', 'cells were')} made by another version of {name}; its code has changed since"
            for name, count in sorted(found.items())
        ]

    def damaged(self) -> dict[str, list[str]]:
        """Stage to the ids of damaged cells."""
        return {s.stage.name: [i for i, why in s.reasons.items() if why == "damaged"] for s in self.stages}


def make_plan(cells: list[Cell], ledger: Ledger, pack: int = DEFAULT_PACK) -> Plan:
    """Compare a grid's cells with the ledger. Reads records and file sizes only; writes nothing."""
    planned = []
    for stage in stages().values():
        mine = tuple(cell for cell in cells if cell.stage == stage.name)
        if not mine:
            continue
        records, damaged = ledger.scan(stage.name)
        failed = ledger.failures(stage.name)
        left = tuple(cell for cell in mine if cell.id not in records)
        reasons = {
            c.id: "damaged" if c.id in damaged else "failed before" if c.id in failed else "not started" for c in left
        }
        trials = len(packs(mine, pack)) if stage.runs_as == "trials" else 0
        planned.append(
            StagePlan(stage, mine, left, reasons, trials, _replaced(left, records.values()), records.values())
        )
    return Plan(tuple(planned))


def _replaced(left: Iterable[Cell], records: Iterable[Record]) -> Counter[str]:
    """Component to cells of ``left`` that are finished but for the code of a component from outside."""
    coded = [(cell.params(), cell.codes()) for cell in left if cell.codes()]
    if not coded:
        return Counter()
    made: dict[str, list[dict[str, Any]]] = {}
    names = {name for _, codes in coded for name in codes}
    for record in records:
        made.setdefault(_without(names, record.params), []).append(record.params)
    found: Counter[str] = Counter()
    for params, codes in coded:
        for name in codes:
            others = made.get(_without(names, params), ())
            if any(other.get(name, "") != codes[name] for other in others):
                found[str(params[name.removesuffix("_code")])] += 1
    return found


def _without(names: set[str], params: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in params.items() if key not in names}, sort_keys=True)
