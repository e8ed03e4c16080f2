"""What a grid asks for, what is done, and what is left, with the reason of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from geco_ray.cells import Cell
from geco_ray.ledger import Ledger
from geco_ray.plan.expand import STAGES, packs

TRIAL_STAGES = ("train", "models", "counterfactuals")
HOLDER_STAGES = ("explain", "validity")


@dataclass(frozen=True)
class StagePlan:
    """One stage of a grid.

    Attributes:
        cells: all cells. left: those not done. reasons: id to ``not started``, ``failed before`` or ``damaged``.
        trials: Ray Tune trials that the whole stage is (0 for stages that run on holders or in the driver).
    """

    stage: str
    cells: tuple[Cell, ...]
    left: tuple[Cell, ...]
    reasons: dict[str, str]
    trials: int

    def row(self) -> dict[str, Any]:
        """The stage as one row of a table."""
        reasons = Counter(self.reasons.values())
        kinds = Counter(cell.KIND for cell in self.cells if cell.KIND)
        return {
            "stage": self.stage,
            "cells": len(self.cells),
            "of which": ", ".join(f"{n:,} {kind}" for kind, n in kinds.items()),
            "trials": self.trials,
            "runs as": "trials"
            if self.stage in TRIAL_STAGES
            else "holders"
            if self.stage in HOLDER_STAGES
            else "driver",
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
        return {s.stage: [i for i, why in s.reasons.items() if why == "damaged"] for s in self.stages}


def make_plan(cells: list[Cell], ledger: Ledger, pack: int) -> Plan:
    """Compare a grid's cells with the ledger. Reads records and file sizes only; writes nothing."""
    stages = []
    for stage in STAGES:
        mine = tuple(cell for cell in cells if cell.stage == stage)
        if not mine:
            continue
        records, damaged = ledger.scan(stage)
        failed = ledger.failures(stage)
        left = tuple(cell for cell in mine if cell.id not in records)
        reasons = {
            c.id: "damaged" if c.id in damaged else "failed before" if c.id in failed else "not started" for c in left
        }
        trials = len(packs(mine, pack)) if stage in TRIAL_STAGES else 0
        stages.append(StagePlan(stage, mine, left, reasons, trials))
    return Plan(tuple(stages))
