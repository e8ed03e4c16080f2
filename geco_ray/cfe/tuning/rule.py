"""Tuning of Wachter and ROAR-LIME: the grid, the rule, and the frozen record of what it selected.

The rule ("Robust to Which Model Change?", validity first as ROAR's authors do): run every grid point on adverse rows of
the validation part with the first base model; take the largest share of base-valid answers, then the smallest mean
distance, then the first in the grid. No changed model is looked at. The selection is frozen for all base models.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.methods.base import METHODS, GenerationTask
from geco_ray.cfe.protocol import resolve_protocol
from geco_ray.errors import UserError
from geco_ray.registry import Options

RECORD = Path(__file__).with_name("tuned.json")

WACHTER_GRID = tuple(
    {"trade_off": trade_off, "learning_rate": rate} for trade_off in (0.01, 0.1, 1.0) for rate in (0.01, 0.02)
)
ROAR_LIME_GRID = tuple(
    {"trade_off": value} for value in (0.0005, 0.001, 0.005, *(round(0.01 + 0.05 * k, 2) for k in range(22)))
)
GRIDS: Mapping[str, tuple[dict[str, float], ...]] = {"wachter": WACHTER_GRID, "roar_lime": ROAR_LIME_GRID}


@dataclass(frozen=True)
class Candidate:
    """One grid point's score: the share of all factuals with a base-valid answer, and those answers' mean distance."""

    options: dict[str, float]
    valid_share: float
    distance: float | None

    @property
    def score(self) -> tuple[float, float]:
        """What is maximised, in lexicographic order; no distance counts as infinitely far."""
        return self.valid_share, -np.inf if self.distance is None else -self.distance


@dataclass(frozen=True)
class Tuning:
    """The outcome for one method, protocol and data set, with every candidate's score."""

    selected: dict[str, float]
    factuals: int
    candidates: tuple[Candidate, ...]

    def to_json(self) -> dict[str, object]:
        """As kept in the record."""
        return asdict(self)


def select(candidates: Sequence[Candidate]) -> Candidate:
    """The best candidate; the first of equals."""
    return max(candidates, key=lambda candidate: candidate.score)  # max keeps the first


def tune(
    method: str,
    task: GenerationTask,
    factuals: NDArray[np.float64],
    grid: Sequence[dict[str, float]] | None = None,
) -> Tuning:
    """Score every point of the method's grid on ``factuals``, float64 (k, d), adverse rows of the validation part.

    Raises:
        UserError: no such method.
        KeyError: the method has no grid and none is given.
    """
    from geco_ray.cfe.generation import generate

    entry, candidates = METHODS.get(method), []
    ids = range(len(factuals))
    for point in grid if grid is not None else GRIDS[entry.name]:
        own = _streams_of_tuning(task)
        table = generate(entry.target(own, entry.parse_options(dict(point))), own, factuals, ids, ids)
        distances = [x for x in table["distance"].to_pylist() if x is not None]
        share = len(distances) / len(factuals) if len(factuals) else 0.0
        candidates.append(Candidate(dict(point), share, float(np.mean(distances)) if distances else None))
    return Tuning(select(candidates).options, len(factuals), tuple(candidates))


class _Replay(GenerationTask):
    """The task on one stream of the base seed that runs through the factuals in their order, as LIME's own does."""

    @cached_property
    def _run_long(self) -> np.random.RandomState:
        return np.random.RandomState(self.base_seed % 2**32)

    def stream(self, method: str, factual_id: int) -> Any:
        """The shared stream, wherever it is."""
        return self._run_long


class _Own(GenerationTask):
    """The task with streams that no request of the benchmark has."""

    def stream(self, method: str, factual_id: int) -> np.random.Generator:
        """The stream of one tuning factual."""
        return super().stream(f"{method} tuning", factual_id)


def _streams_of_tuning(task: GenerationTask) -> GenerationTask:
    kind = _Replay if resolve_protocol(task.protocol).lime_tuning_replays_release else _Own
    return kind(**{field.name: getattr(task, field.name) for field in fields(task)})


def resolve_tuned(method: str, options: Options, protocol: str, dataset: str) -> dict[str, float]:
    """The value of every tuned option of ``method``: as given in ``options``, else from the record (:func:`tuned`).

    Needs neither torch nor data, so that a plan can put the values into a cell's identity.

    Raises:
        UserError: an option is left open and the record does not say which value this data set should have.
        KeyError: the method is not tuned, or the record has no such protocol.
    """
    given = {name: getattr(options, name) for name in GRIDS[method][0]}
    missing = [name for name, value in given.items() if value is None]
    chosen = {name: value for name, value in given.items() if value is not None}
    frozen = tuned(method, protocol, dataset) if missing else {}
    if not missing or frozen:
        return frozen | chosen
    example = GRIDS[method][len(GRIDS[method]) // 2] | chosen
    values = ", ".join(f"{key}: {value}" for key, value in example.items())
    what = f"{METHODS.get(method).title} has no tuned {' and '.join(missing)} for the data set {dataset!r}"
    raise UserError(
        f"{what} under protocol {protocol}: {', '.join(_record()[method][protocol])} need different values",
        where=f"cfe.methods, {method}",
        remedy=f"Set {'it' if len(missing) == 1 else 'them'} yourself, for example cfe.methods=[{{name: {method}, "
        f"{values}}}]; geco_ray.cfe.tuning.tune scores the values of a grid by the benchmark's rule.",
    )


def tuned(method: str, protocol: str, dataset: str) -> dict[str, float]:
    """The frozen selection for ``dataset``.

    A data set that is not in the record gets what all recorded ones selected, if they agree (Wachter under ``paper``).
    Where they do not, there is no value to take and the result is empty, which :func:`resolve_tuned` refuses.

    Raises:
        KeyError: the record has no such method or protocol.
    """
    selections: dict[str, dict[str, float]] = {
        name: entry["selected"] for name, entry in _record()[method][protocol].items()
    }
    if dataset in selections:
        return dict(selections[dataset])
    first, *others = selections.values()
    return dict(first) if all(other == first for other in others) else {}


@cache
def _record() -> Any:
    return json.loads(RECORD.read_text())
