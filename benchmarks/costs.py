"""Measured costs for the estimates of plans: aggregates the records of run folders into ``geco_ray/plan/costs.json``.

    python benchmarks/costs.py RUNS [RUNS ...]

One entry for each stage, kind, data set, encoder and component: units of work, seconds of a core, bytes on disk.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import geco_ray
from geco_ray.ledger import Ledger
from geco_ray.plan.benchmark import stages
from geco_ray.plan.costs import units

OUT = Path(geco_ray.__file__).parent / "plan" / "costs.json"
NAMES = ("kind", "dataset", "encoder", "paradigm", "method", "family")


def main(roots: list[str]) -> None:
    """Write the file and print how many cells it rests on."""
    entries: dict[str, dict[str, Any]] = {}
    machines: set[str] = set()
    cells = 0
    for root in roots:
        for stage in stages():
            for record in Ledger(root).records(stage):
                if record.info.get("device", "cpu") != "cpu" or "seconds" not in record.info:
                    continue
                params = {name: record.params[name] for name in NAMES if name in record.params}
                key = json.dumps([stage, params], sort_keys=True)
                entry = entries.setdefault(
                    key, {"stage": stage, "params": params, "units": 0.0, "size": 0.0, "seconds": 0.0, "bytes": 0}
                )
                work, size = units(stage, record.params)
                entry["units"] += work
                entry["size"] += size
                entry["seconds"] += record.info.get("cpu_seconds", record.info["seconds"])
                entry["bytes"] += sum(file["bytes"] for file in record.files.values())
                cells += 1
                kernels = record.info.get("kernels", {})
                machines.add(f"{record.info.get('machine')} with {kernels.get('torch')} kernels, one core")
    costs = [
        entry
        | {"units": round(entry["units"], 3), "size": round(entry["size"], 3), "seconds": round(entry["seconds"], 4)}
        for _, entry in sorted(entries.items())
    ]
    measured_on = {"machines": sorted(machines), "cells": cells, "geco_ray": geco_ray.__version__}
    lines = ",\n  ".join(json.dumps(entry) for entry in costs)
    OUT.write_text(f'{{\n "measured": {json.dumps(measured_on)},\n "costs": [\n  {lines}\n ]\n}}\n', encoding="utf-8")
    print(f"{len(costs)} entries from {cells:,} cells -> {OUT}")


if __name__ == "__main__":
    main(sys.argv[1:])
