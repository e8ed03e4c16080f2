"""The tables of a trial: a row per request and variant, and a row per family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from geco_ray.cfe.metrics import METRICS, count_pairs
from geco_ray.cfe.survival.families import Variant
from geco_ray.cfe.survival.requests import Requests
from geco_ray.cfe.survival.result import NO_CHANGE, SHOWN


@dataclass(frozen=True, eq=False)
class Answer:
    """What one variant says: whether it changed anything, of each base-valid counterfactual and each factual."""

    changed: bool | None
    survived: NDArray[np.bool_] | None
    adverse: NDArray[np.bool_] | None
    reason: str | None = None


def pairs_table(requests: Requests, planned: Sequence[Variant], answers: Sequence[Answer]) -> pa.Table:
    k, blocks = len(requests.status), []
    for variant, answer in zip(planned, answers, strict=True):
        survived = np.full(k, None, dtype=object)
        if answer.survived is not None:
            survived[requests.found] = answer.survived
        adverse = [None] * k if answer.adverse is None else answer.adverse.tolist()
        blocks.append(
            pa.table(
                {
                    "request": pa.array(np.arange(k)),
                    "family": pa.repeat(variant.family, k),
                    "variant": pa.array(np.full(k, variant.number)),
                    "level": pa.repeat(variant.level, k),
                    "changed": pa.array([answer.changed] * k, pa.bool_()),
                    "status": pa.array(requests.status, pa.string()),
                    "survived": pa.array(survived.tolist(), pa.bool_()),
                    "factual_still_adverse": pa.array(adverse, pa.bool_()),
                    "reason": pa.array([answer.reason] * k, pa.string()),
                }
            )
        )
    return pa.concat_tables(blocks)


def summary_table(requests: Requests, planned: Sequence[Variant], answers: Sequence[Answer]) -> pa.Table:
    rows = []
    for family in dict.fromkeys(variant.family for variant in planned):
        own = [a for variant, a in zip(planned, answers, strict=True) if variant.family == family]
        live = [answer for answer in own if answer.changed]
        failed = sum(answer.changed is None for answer in own)
        verdict = "changed" if live else "failed" if failed == len(own) else NO_CHANGE
        counts = _counts(requests, live)
        metrics = {name: METRICS[name].value(counts) for name in SHOWN}
        unchanged = len(own) - len(live) - failed
        numbers = {"variants": len(own), "unchanged": unchanged, "failed": failed}
        rows.append({"family": family, **numbers, **counts, **metrics, "verdict": verdict})
    return pa.Table.from_pylist(rows)


def _counts(requests: Requests, live: Sequence[Answer]) -> dict[str, float]:
    """The benchmark's counts of pairs, over the variants that changed something."""
    if not live:
        return count_pairs([None] * len(requests.status), [[] for _ in requests.status])
    adverse = np.stack([answer.adverse for answer in live if answer.adverse is not None], axis=1)
    survived = np.stack([answer.survived for answer in live if answer.survived is not None], axis=1)
    by_request: list[Any] = [None] * len(requests.status)
    for place, request in enumerate(requests.found.tolist()):
        by_request[request] = survived[place].tolist()
    return count_pairs(by_request, adverse.tolist())
