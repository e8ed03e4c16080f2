"""A submission held to a run folder's own models: are its requests there, and how many are not answered?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geco_ray.cfe.factuals import select_factuals
from geco_ray.errors import UserError
from geco_ray.submissions import AttributionFile, BaseKey, CounterfactualFile

if TYPE_CHECKING:
    from geco_ray.cfe.base_model import BaseModel
    from geco_ray.cfe.data.datasets import Dataset
    from geco_ray.geco.task import Task


@dataclass(frozen=True)
class Coverage:
    """Of ``requests`` of one base model (or rows of one classifier) how many are answered, and how many accepted."""

    of: str
    requests: int
    answered: int
    accepted: int | None = None

    @property
    def missing(self) -> int:
        """Requests without an answer."""
        return self.requests - self.answered


def coverage(file: CounterfactualFile, base: BaseModel, dataset: Dataset) -> Coverage:
    """Hold a file's rows for one base model to its requests.

    Raises:
        UserError: a request that the model does not have, or values that do not fit its features.
    """
    key = BaseKey(base.key.dataset, base.key.seed, base.key.seeding)
    rows = file.rows(key, dataset.features, dataset.mean, dataset.scale)
    requests = len(select_factuals(base, dataset.test))
    beyond = sorted(request for request in rows if request >= requests)
    if beyond:
        raise UserError(
            f"{key.dataset!r}, base seed {key.base_seed}, has no request {beyond[0]}",
            where=str(file.path), expected=f"0 to {requests - 1}",
            remedy="The requests of an export of this seed and seeding have the right ids",
        )  # fmt: skip
    points = [point for point in rows.values() if point is not None]
    accepted = int(base.model.favourable(np.array(points)).sum()) if points else 0
    return Coverage(f"{key.dataset}, base seed {key.base_seed}, {key.seeding}", requests, len(points), accepted)


def sentence_coverage(file: AttributionFile, model: str, task: Task, paradigm: str) -> Coverage:
    """Hold a file's rows for one classifier to the test split of its task.

    Raises:
        UserError: a row that the split does not have, or another number of scores than words.
    """
    scores = file.scores[model]
    for row, values in scores.items():
        if row >= len(task.test):
            expected = f"0 to {len(task.test) - 1}"
            raise UserError(
                f"the test split of {task.name!r} has no row {row}", where=str(file.path), expected=expected
            )
        words = len(task.test[row].words)
        if values is not None and len(values) != words:
            what = f"row {row} has another number of scores than words"
            raise UserError(what, where=str(file.path), found=len(values), expected=str(words))
    answered = sum(values is not None for values in scores.values())
    return Coverage(f"{task.name}, {paradigm}, model {model}", len(task.test), answered)
