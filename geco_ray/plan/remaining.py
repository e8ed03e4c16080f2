"""What a grid asks for, what is done, and what is left, with the reason of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from geco_ray.cells import Cell
from geco_ray.ledger import Ledger
from geco_ray.plan.benchmark import DEFAULT_PACK, Stage, stages
from geco_ray.plan.expand import packs


@dataclass(frozen=True)
class StagePlan:
    """One stage of a grid.

    Attributes:
        stage: what it is called and runs as. cells: all cells. left: those not done.
        reasons: id to ``not started``, ``failed before`` or ``damaged``.
        trials: Ray Tune trials that the whole stage is (0 for stages that run on actors or in the driver).
    """

    stage: Stage
    cells: tuple[Cell, ...]
    left: tuple[Cell, ...]
    reasons: dict[str, str]
    trials: int

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
        planned.append(StagePlan(stage, mine, left, reasons, trials))
    return Plan(tuple(planned))
