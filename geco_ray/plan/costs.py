"""What a plan will cost: seconds of a CPU core (or of a GPU) and bytes on disk, by cells that were measured before.

A cell costs what cells like it cost: first those of this run folder, else those that were measured for the package
(``costs.json``, made by ``benchmarks/costs.py``). "Like it" is tried from near to far: the same values but for seeds,
then the same data set and components, then the same components on other data or with another encoder. In between the
cost is in proportion to the units of work that the benchmark counts. What is like nothing is counted, never guessed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from geco_ray.cells import Cell
from geco_ray.ledger.record import Record
from geco_ray.plan.benchmark import load_named, owner_of

_FILE = Path(__file__).with_name("costs.json")
_DRAWS = frozenset({"seed", "base_seed", "variant", "first", "end"})  # cells that differ in these alone cost the same
_NEAR = ("dataset", "encoder", "paradigm", "method", "family")
_LEVELS = (_NEAR, _NEAR[2:], _NEAR[3:])


@dataclass
class Cost:
    """What some finished cells took.

    Attributes:
        units: of work, and size: of what is stored, as their benchmark counts both (see ``Benchmark.units``).
        seconds: of a core, or of a GPU. bytes: on disk.
    """

    units: float = 0.0
    size: float = 0.0
    seconds: float = 0.0
    bytes: float = 0.0

    def add(self, other: Cost) -> None:
        """Count more cells."""
        self.units += other.units
        self.size += other.size
        self.seconds += other.seconds
        self.bytes += other.bytes


@dataclass
class Costs:
    """Costs by what the cells were, from near to far, on one kind of device."""

    by_key: dict[str, Cost] = field(default_factory=dict)

    def add(self, stage: str, params: Mapping[str, Any], cost: Cost) -> None:
        """Count finished cells of one kind."""
        for key in _keys(stage, params):
            self.by_key.setdefault(key, Cost()).add(cost)


@dataclass
class Estimate:
    """What cells will take on one kind of device.

    Attributes:
        seconds: of one core, or of one GPU. bytes: on disk.
        own, shipped, unknown: how many cells were estimated by this run folder, by the package, and not at all.
    """

    seconds: float = 0.0
    bytes: float = 0.0
    own: int = 0
    shipped: int = 0
    unknown: int = 0


def measured(records: Iterable[Record], device: str = "cpu") -> Costs:
    """The costs of the finished cells that a kind of device (``cpu``, ``cuda``) computed."""
    costs = Costs()
    for record in records:
        # On a CPU the process' own time, which a busy machine does not stretch; a GPU computes beside its process.
        seconds = record.info.get("cpu_seconds") if device == "cpu" else None
        seconds = record.info.get("seconds") if seconds is None else seconds
        if isinstance(seconds, int | float) and str(record.info.get("device", "cpu")).partition(":")[0] == device:
            size = sum(int(file["bytes"]) for file in record.files.values())
            costs.add(record.stage, record.params, Cost(*units(record.stage, record.params), float(seconds), size))
    return costs


@cache
def shipped() -> Costs:
    """The costs that were measured for the package on CPUs; ``costs.json`` says on what."""
    costs = Costs()
    for entry in json.loads(_FILE.read_text(encoding="utf-8"))["costs"]:
        costs.add(
            entry["stage"], entry["params"], Cost(entry["units"], entry["size"], entry["seconds"], entry["bytes"])
        )
    return costs


def estimate(cells: Iterable[Cell], own: Costs, default: Costs | None = None) -> Estimate:
    """What ``cells`` will take, by ``own`` measurements first, then by ``default``'s (none: unknown)."""
    total = Estimate()
    for cell in cells:
        params = cell.params()
        cost, is_own = _find(cell.stage, params, own, default)
        if cost is None:
            total.unknown += 1
            continue
        work, size = units(cell.stage, params)
        total.seconds += work / cost.units * cost.seconds
        total.bytes += size / cost.size * cost.bytes
        total.own += is_own
        total.shipped += not is_own
    return total


def expected_seconds(cells: Iterable[Cell], own: Costs, default: Costs) -> dict[str, float]:
    """Id to what a cell will take; one that is like nothing takes what the others take on average."""
    told, unknown = {}, []
    for cell in cells:
        one = estimate([cell], own, default)
        if one.unknown:
            unknown.append(cell.id)
        else:
            told[cell.id] = one.seconds
    average = sum(told.values()) / len(told) if told else 1.0
    return told | dict.fromkeys(unknown, average)


def duration(seconds: float) -> str:
    """A rough time in words: ``40 s``, ``12 min``, ``3.5 h``, ``4 days``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"


def _find(stage: str, params: Mapping[str, Any], own: Costs, default: Costs | None) -> tuple[Cost | None, bool]:
    for key in _keys(stage, params):
        if key in own.by_key:
            return own.by_key[key], True
        if default is not None and key in default.by_key:
            return default.by_key[key], False
    return None, False


def units(stage: str, params: Mapping[str, Any]) -> tuple[float, float]:
    """How much work a cell with these values is, and how much is stored of it; 1 where its benchmark does not count."""
    counted = owner_of(stage).units
    work, size = load_named(counted)(stage, params) if counted else (1.0, 1.0)
    return float(work), float(size)


def _keys(stage: str, params: Mapping[str, Any]) -> Iterator[str]:
    kind = params.get("kind", "")
    same = {name: value for name, value in params.items() if name not in _DRAWS}
    yield json.dumps([stage, kind, same], sort_keys=True)
    for names in _LEVELS:
        yield json.dumps([stage, kind, {name: params[name] for name in names if name in params}], sort_keys=True)
