"""Runs a prepared method over factuals and decides what its answers are worth.

Statuses: ``found`` (finite, not the factual, base model p >= 0.5), ``base_invalid`` (finite, not the factual, p < 0.5),
``not_found`` (nothing returned, or the factual itself), ``budget`` (a budget ended without a point), ``error``
(the method says so, an exception, or a point that is not finite or has the wrong shape). ``found`` and ``base_invalid``
count as generated. A method's own claim never makes a point valid.

A method reports a failure that is a property of the request as ``Answer(None, "error", reason)``. An exception is a
fault: one or two are kept as rows with status ``error``, but more must not look like low coverage, so they end the run
(:data:`MOST_RAISED`), and one that speaks of the machine or the installation does so at once.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from geco_ray.arithmetic import one_blas_thread
from geco_ray.cfe.constraints.columns import with_constraints
from geco_ray.cfe.decision import favourable
from geco_ray.cfe.distance import mean_over_columns
from geco_ray.cfe.methods.base import Answer, GenerationTask, Prepared, Scalar
from geco_ray.errors import GecoRayError

_log = logging.getLogger(__name__)

MOST_RAISED = 0.05
"""Largest share of requests that may raise; up to two always may."""

BATCH = 64
"""Requests that a method gets at a time by default."""

Raised = list[tuple[int, Exception]]
"""The ids of the requests that raised, with what they raised."""

SCHEMA = pa.schema(
    [
        pa.field("factual_id", pa.int64(), nullable=False),
        pa.field("dataset_row_id", pa.int64(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("base_probability", pa.float32()),
        pa.field("counterfactual", pa.list_(pa.float64())),
        pa.field("factual", pa.list_(pa.float64()), nullable=False),
        pa.field("distance", pa.float64()),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("batch", pa.int32(), nullable=False),
    ]
)
"""Columns of every counterfactuals table; the method's own columns follow.

``base_probability``: the base model at the returned point, null unless it is finite and not the factual.
``counterfactual``: null unless generated. ``distance``: mean l1 distance in robust scales, null unless
``found``. ``seconds``: wall time of the request's batch, validity check and failures included, divided by
``batch``, the number of requests in it. Where the data set declares constraints, ``constraints_kept`` and ``broken``
end the table: whether a generated point keeps them, and what it breaks; its status stays as it is.
"""


@dataclass(frozen=True, eq=False)
class _Verdict:
    """What a batch came to: one entry per request in each list."""

    status: list[str]
    reason: list[str | None]
    probability: list[float | None]
    point: list[NDArray[np.float64] | None]
    distance: list[float | None]
    columns: list[dict[str, Scalar]]


def generate(
    prepared: Prepared,
    task: GenerationTask,
    factuals: NDArray[np.float64],
    factual_ids: Sequence[int],
    row_ids: Sequence[int],
    batch: int | None = None,
) -> pa.Table:
    """Ask ``prepared`` for a counterfactual of each factual, and judge what comes back.

    Args:
        prepared: a method made ready by its ``prepare(task, options)``.
        task: the task it was prepared for.
        factuals: standardised rows that the base model calls adverse, float64 (k, d); not changed.
        factual_ids: their ids, which name the random streams.
        row_ids: their row ids in the data set.
        batch: how many requests a method gets at a time; it changes the speed and nothing else. Left out: the method's
            attribute ``batch`` where it has one, else :data:`BATCH`.

    Returns:
        One row per factual in the given order: :data:`SCHEMA`, then the method's own columns.

    Raises:
        ValueError: the arguments do not belong together.
        RuntimeError: more requests raised than :data:`MOST_RAISED` allows; its cause is the first of their errors.
        GecoRayError, MemoryError, ImportError, OSError, torch.OutOfMemoryError: as the method raised them.
    """
    batch = getattr(prepared, "batch", BATCH) if batch is None else batch
    if not len(factuals) == len(factual_ids) == len(row_ids) or batch < 1:
        raise ValueError("factuals, factual_ids and row_ids must have one length, batch must be positive")
    verdicts: list[_Verdict] = []
    raised: Raised = []
    seconds, sizes = list[float](), list[int]()
    for first in range(0, len(factuals), batch):
        rows = np.array(factuals[first : first + batch], dtype=np.float64)
        ids, started = [int(i) for i in factual_ids[first : first + batch]], time.perf_counter()
        with one_blas_thread():
            verdicts.append(_judge(task, rows, _ask(prepared, rows, ids, raised)))
        seconds += [(time.perf_counter() - started) / len(rows)] * len(rows)
        sizes += [len(rows)] * len(rows)
    _check_raised(raised, len(factuals))
    return with_constraints(_table(factuals, factual_ids, row_ids, verdicts, seconds, sizes), task.constraints)


def _check_raised(raised: Raised, requests: int) -> None:
    """Single errors are answers of their requests; many are a fault of the method."""
    if len(raised) > max(2, MOST_RAISED * requests):
        number, error = raised[0]
        what = f"{len(raised)} of {requests} requests raised"
        raise RuntimeError(f"{what}; the first, request {number}: {type(error).__name__}: {error}") from error


def _ask(prepared: Prepared, rows: NDArray[np.float64], ids: list[int], raised: Raised) -> list[Answer]:
    """The method's answers; if a batch raises, each request is asked alone, so that one cannot fail the others.

    A request that raises alone is noted in ``raised``.
    """
    try:
        answers = prepared.generate(rows.copy(), list(ids))
        if len(answers) != len(ids):
            raise RuntimeError(f"the method gave {len(answers)} answers to {len(ids)} requests")
        return answers
    except Exception as error:
        if _concerns_all(error):
            raise
        if len(ids) > 1:
            return [_ask(prepared, rows[i : i + 1], ids[i : i + 1], raised)[0] for i in range(len(ids))]
        _log.warning("request %d failed", ids[0], exc_info=True)
        raised.append((ids[0], error))
        return [Answer(None, "error", f"{type(error).__name__}: {error}"[:300])]


def _concerns_all(error: Exception) -> bool:
    """Whether an error speaks of the machine, the installation or the grid, and not of one request."""
    if isinstance(error, (MemoryError, ImportError, OSError, GecoRayError)):
        return True
    torch = sys.modules.get("torch")  # its errors cannot come from elsewhere, so it need not be imported
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)  # torch's for the main memory


def _judge(task: GenerationTask, rows: NDArray[np.float64], answers: list[Answer]) -> _Verdict:
    """Status, base probability and distance of each answer of one batch."""
    k, d = rows.shape
    status: list[str] = []
    reason: list[str | None] = []
    points = np.full((k, d), np.nan)
    for i, answer in enumerate(answers):
        state, why, point = _examine(answer, rows[i])
        status.append(state)
        reason.append(why)
        if point is not None:
            points[i] = point
    judged = np.flatnonzero(np.array(status) == "found")
    p = task.model.probability(points[judged])
    accepted = favourable(p)
    distance = mean_over_columns(points[judged], rows[judged], task.mad, task.groups)
    verdict = _Verdict(status, reason, [None] * k, [None] * k, [None] * k, [dict(a.columns) for a in answers])
    for place, i in enumerate(judged.tolist()):
        verdict.probability[i], verdict.point[i] = float(p[place]), points[i]
        if accepted[place]:
            verdict.distance[i] = float(distance[place])
        else:
            status[i], reason[i] = "base_invalid", "the base model calls the returned point adverse"
    return verdict


def _examine(answer: Answer, factual: NDArray[np.float64]) -> tuple[str, str | None, NDArray[np.float64] | None]:
    """Status and reason before the base model is asked, and the point if there is one to ask about."""
    if answer.point is None:
        status = answer.status if answer.status in ("not_found", "budget", "error") else "not_found"
        return status, answer.reason or "nothing was returned", None
    point = np.asarray(answer.point, dtype=np.float64)
    if point.shape != factual.shape:
        return "error", f"a point of shape {point.shape} was returned", None
    with np.errstate(over="ignore"):
        finite = np.isfinite(point.astype(np.float32)).all()  # as the model sees it
    if not finite:
        return "error", "non_finite: the returned point is not finite", None
    if np.array_equal(point, factual):
        return "not_found", "the factual itself was returned", None
    return "found", None, point


def _table(
    factuals: NDArray[np.float64],
    factual_ids: Sequence[int],
    row_ids: Sequence[int],
    verdicts: list[_Verdict],
    seconds: list[float],
    sizes: list[int],
) -> pa.Table:
    own = [columns for verdict in verdicts for columns in verdict.columns]
    names = list(dict.fromkeys(name for columns in own for name in columns))
    table = pa.table(
        {
            "factual_id": [int(i) for i in factual_ids],
            "dataset_row_id": [int(i) for i in row_ids],
            "status": [s for verdict in verdicts for s in verdict.status],
            "reason": [s for verdict in verdicts for s in verdict.reason],
            "base_probability": [p for verdict in verdicts for p in verdict.probability],
            "counterfactual": [p for verdict in verdicts for p in verdict.point],
            "factual": list(np.asarray(factuals, dtype=np.float64)),
            "distance": [x for verdict in verdicts for x in verdict.distance],
            "seconds": seconds,
            "batch": sizes,
        },
        schema=SCHEMA,
    )
    for name in names:
        table = table.append_column(name, pa.array([columns.get(name) for columns in own]))
    return table
