"""Counterfactuals that were made elsewhere and come as a file: looked up, and judged like any method's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from geco_ray.cfe.methods.base import METHODS, Answer, GenerationTask, Scalar
from geco_ray.submissions import BaseKey, SubmissionOptions, read_counterfactuals


class Submission:
    """The file's answers for one base model."""

    def __init__(self, answers: Mapping[int, NDArray[np.float64] | None]) -> None:
        self._answers = answers
        self.set_up: Mapping[str, Scalar] = {"rows": len(answers)}

    def generate(self, factuals: NDArray[np.float64], factual_ids: Sequence[int]) -> list[Answer]:
        """The file's row of each request; one that is missing is an answer too."""
        return [_answer(self._answers, request) for request in factual_ids]


def _answer(answers: Mapping[int, NDArray[np.float64] | None], request: int) -> Answer:
    point = answers.get(request)
    return Answer(None, "not_found", "not answered in the submission") if point is None else Answer(point, "found")


@METHODS.register("submission", title="Submission", options=SubmissionOptions, listed=False)
def prepare(task: GenerationTask, options: SubmissionOptions) -> Submission:
    """Read the file.

    Raises:
        UserError: it has changed, or does not fit the task's features.
    """
    options.require_content()
    file = read_counterfactuals(options.path, options.content)
    key = BaseKey(task.dataset, task.base_seed, task.seeding)
    return Submission(file.rows(key, task.features, task.mean, task.scale))
