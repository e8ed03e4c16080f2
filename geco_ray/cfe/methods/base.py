"""What a counterfactual method gets and gives.

A method registers a callable ``prepare(task, options)`` that does its set-up once (candidate sets, thresholds, helper
models) and returns an object whose ``generate`` answers any batch of factuals. An answer is a claim: whether a point is
a counterfactual, and whether the base model accepts it, is decided by :mod:`geco_ray.cfe.generation` alone.

Rules for a method: the target class is always 1 (favourable, p >= 0.5); inputs are never changed; no global
random state is read or set, each request draws from :meth:`GenerationTask.stream`; a search ends by counted
steps. The module that registers a method imports torch, SciPy and scikit-learn inside its functions only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from geco_ray.registry import Registry
from geco_ray.seeds import numpy_stream

if TYPE_CHECKING:
    from geco_ray.cfe.base_model import BaseModel
    from geco_ray.cfe.data.datasets import Dataset
    from geco_ray.cfe.mlp import Mlp

Scalar = str | int | float | bool | None
Claim = Literal["found", "not_found", "budget", "error"]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class GenerationTask:
    """All that a method may know: the base model and the data it was made from, never a changed model.

    Args:
        dataset: name of the data set.
        base_seed: seed of the base model; every request's random stream is derived from it.
        protocol: ``paper`` or ``corrected``, see :mod:`geco_ray.cfe.protocol`.
        seeding: ``paper`` or ``independent``, how helper models derive their seeds.
        model: the base model.
        train_x: standardised training matrix, float32 (n, d).
        train_y: its labels, int64 (n,), 0 adverse, 1 favourable.
        update_x: update pool, float32 (u, d).
        update_y: its labels, int64 (u,).
        val_x: validation part, float32 (v, d).
        val_y: its labels, int64 (v,).
        device: a torch device name, for methods that work in torch.
        features: names of the columns, as in the table.
        mean: mean of each column in the training part, float64 (d,); with ``scale`` it leads back to the table's units.
        scale: its (population) deviation, float64 (d,).
        time_limit: safety net in seconds per request; a request that it ends has status ``budget``. ``None``:
            no clock is looked at, and results cannot depend on the machine's load.
    """

    dataset: str
    base_seed: int
    protocol: str
    seeding: str
    model: Mlp
    train_x: NDArray[np.float32]
    train_y: NDArray[np.int64]
    update_x: NDArray[np.float32]
    update_y: NDArray[np.int64]
    val_x: NDArray[np.float32]
    val_y: NDArray[np.int64]
    device: str = "cpu"
    time_limit: float | None = None
    features: tuple[str, ...] = ()
    mean: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    scale: NDArray[np.float64] = field(default_factory=lambda: np.ones(1))

    @staticmethod
    def of(dataset: Dataset, base: BaseModel, protocol: str, device: str = "cpu") -> GenerationTask:
        """The task of a base model, with the methods' view of its data: float32 train, update and validation."""
        return GenerationTask(
            dataset=dataset.name,
            base_seed=base.key.seed,
            protocol=protocol,
            seeding=base.key.seeding,
            model=base.model,
            train_x=dataset.train.x.astype(np.float32),
            train_y=dataset.train.y,
            update_x=dataset.update.x.astype(np.float32),
            update_y=dataset.update.y,
            val_x=dataset.val.x.astype(np.float32),
            val_y=dataset.val.y,
            device=device,
            features=dataset.features,
            mean=dataset.mean,
            scale=dataset.scale,
        )

    @cached_property
    def lower(self) -> NDArray[np.float32]:
        """Smallest training value of each feature, float32 (d,)."""
        return np.asarray(self.train_x.min(axis=0), dtype=np.float32)

    @cached_property
    def upper(self) -> NDArray[np.float32]:
        """Largest training value of each feature, float32 (d,)."""
        return np.asarray(self.train_x.max(axis=0), dtype=np.float32)

    @cached_property
    def mad(self) -> NDArray[np.float64]:
        """Scale of the distance, float64 (d,): see :func:`geco_ray.cfe.distance.robust_scale`."""
        from geco_ray.cfe.distance import robust_scale

        return robust_scale(self.train_x)

    def stream(self, method: str, factual_id: int) -> np.random.Generator:
        """The random stream of one request, the same alone, in any batch, in any order and on any worker."""
        return numpy_stream("counterfactual", self.dataset, self.base_seed, method, factual_id)

    @cached_property
    def _shared(self) -> dict[Hashable, Any]:
        return {}

    def share(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` gives, made once for this task: work that several settings of a method would repeat.

        ``key`` must begin with a word of the method's own and say all that the value depends on besides the task. The
        value is seen by all who ask and must not be changed.
        """
        if key not in self._shared:
            self._shared[key] = make()
        found: T = self._shared[key]
        return found

    def deadline(self, requests: int) -> Deadline:
        """A clock for a batch of ``requests``; it never runs out while ``time_limit`` is ``None``."""
        return Deadline(None if self.time_limit is None else self.time_limit * requests)


class Deadline:
    """Safety net: tells whether the seconds given at its start are over."""

    reason = "the safety time limit was reached"

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    def over(self) -> bool:
        """True once the time is up; always False without a limit."""
        return self._end is not None and time.monotonic() >= self._end


@dataclass(frozen=True, eq=False)
class Answer:
    """What a method claims for one request.

    Args:
        point: the returned row, float64 (d,), or ``None`` when there is nothing to return.
        status: ``found`` (a point is claimed), ``not_found``, ``budget`` (a step, node or time budget ended
            without a point) or ``error``. A method that ends its budget with a point returns it as ``found``
            and says so in a column.
        reason: why there is no point, in a few fixed words; ``None`` for ``found``.
        columns: the method's own columns, the same keys for every request of a method.
    """

    point: NDArray[np.float64] | None
    status: Claim
    reason: str | None = None
    columns: Mapping[str, Scalar] = field(default_factory=dict)


class Prepared(Protocol):
    """A method ready for requests. ``set_up``: what preparing found (thresholds, set sizes), kept with the run."""

    @property
    def set_up(self) -> Mapping[str, Scalar]:
        """What the set-up found (thresholds, sizes), the same for all requests."""
        ...

    def generate(self, factuals: NDArray[np.float64], factual_ids: Sequence[int]) -> list[Answer]:
        """One answer per row of ``factuals``, float64 (k, d), in order. ``factual_ids`` name the random streams."""
        ...


Prepare = Callable[[GenerationTask, Any], Prepared]

METHODS: Registry[Prepare] = Registry("counterfactual method", "geco_ray.cfe.methods")


class Refused:
    """A prepared method that cannot work on this task and says so for every request (no favourable row, ...)."""

    def __init__(self, status: Claim, reason: str, columns: Mapping[str, Scalar] | None = None) -> None:
        self._answer = Answer(None, status, reason, dict(columns or {}))
        self.set_up: Mapping[str, Scalar] = {"refused": reason}

    def generate(self, factuals: NDArray[np.float64], factual_ids: Sequence[int]) -> list[Answer]:
        """The same refusal for each row of ``factuals``."""
        return [self._answer] * len(factuals)
