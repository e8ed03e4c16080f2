"""APΔS when the changed models start from new weights: a diagnostic beside the main table, expected to return nothing.

The main table calibrates the radius on fine-tuned copies of the base model. Here it is the largest parameter distance
to networks that were trained like the base model from other initialisations. Units of such networks are permuted, so
the distance is large, no margin makes all networks sampled from so wide a box agree, and APΔS finds no counterfactual
("Robust to Which Model Change?", diagnostic of APΔS).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.methods.apas.calibration import Radius, largest_change
from geco_ray.cfe.methods.apas.options import ApasOptions
from geco_ray.cfe.methods.apas.search import Apas
from geco_ray.cfe.methods.base import Answer, GenerationTask
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.training import Pool, base_job, train_stacked
from geco_ray.seeds import derive_seed

MODELS = 10
FACTUALS = 5


@dataclass(frozen=True, eq=False)
class Diagnostic:
    """Outcome for one base model: the radius, the answers in request order, and how many ended in which status."""

    radius: Radius
    answers: tuple[Answer, ...]

    @property
    def statuses(self) -> Mapping[str, int]:
        """Number of requests by claimed status."""
        return Counter(answer.status for answer in self.answers)

    @property
    def returned(self) -> int:
        """Requests with a point; the paper reports none."""
        return sum(answer.point is not None for answer in self.answers)


def independent_models(task: GenerationTask, count: int = MODELS) -> tuple[Mlp, ...]:
    """``count`` networks trained like the base model from initialisations of their own, as one stack.

    The paper does not give their seeds; ours are hashes under either way of seeding, so none is a base model or a
    variant.
    """
    rows = np.concatenate([task.train_x, task.update_x])
    pool = Pool(rows, task.train_y, task.update_y, task.val_x, task.val_y)
    seeds = [derive_seed("apas_diagnostic", task.dataset, task.base_seed, number) for number in range(count)]
    trained = train_stacked([base_job(pool, seed, task.model.hidden) for seed in seeds], pool, task.device)
    return tuple(result.model for result in trained)


def initialisation_radius(model: Mlp, others: Sequence[Mlp]) -> Radius:
    """Largest parameter distance from ``model`` to any of ``others``, networks of the same shape.

    Raises:
        ValueError: there are no others.
    """
    if not others:
        raise ValueError("the radius needs at least one other network")
    changes = tuple(largest_change(model, other) for other in others)
    return Radius(max(changes), changes)


def diagnose(
    task: GenerationTask,
    others: Sequence[Mlp],
    factuals: NDArray[np.float64],
    factual_ids: Sequence[int],
    options: ApasOptions | None = None,
) -> Diagnostic:
    """Run APΔS with the radius of ``others`` on the first :data:`FACTUALS` rows of ``factuals`` (k, d)."""
    radius = initialisation_radius(task.model, others)
    settings = (options or ApasOptions()).model_copy(update={"radius": radius.value})
    answers = Apas(task, settings).generate(factuals[:FACTUALS], list(factual_ids)[:FACTUALS])
    return Diagnostic(radius, tuple(answers))
