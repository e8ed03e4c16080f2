"""Attributions that were made elsewhere and come as a file: looked up by classifier and row, and scored like any."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geco_ray.errors import UserError
from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, Scores
from geco_ray.registry import Options
from geco_ray.submissions import SubmissionOptions, read_attributions

NOT_ANSWERED = "not_submitted"


@ATTRIBUTIONS.register("submission", title="Submission", options=SubmissionOptions, listed=False)
def submission(inputs: AttributionInputs, options: Options) -> Scores:
    """The file's scores of each row; a row that is missing has none, with its reason.

    Raises:
        UserError: the file has changed, or a row has another number of scores than words.
    """
    from geco_ray.geco.trained import model_digest

    assert isinstance(options, SubmissionOptions)
    options.require_content()
    found = read_attributions(options.path, options.content).scores.get(
        model_digest(inputs.classifier, str(inputs.stream[2])), {}
    )
    values: list[npt.NDArray[np.floating] | None] = []
    for row, sentence in zip(inputs.rows, inputs.sentences, strict=True):
        scores = found.get(row)
        if scores is not None and len(scores) != sentence.word_count:
            raise UserError(
                f"row {row} has another number of scores than words",
                where=options.file, found=len(scores), expected=str(sentence.word_count),
            )  # fmt: skip
        values.append(scores)
    reasons = [NOT_ANSWERED if value is None else None for value in values]
    return Scores(values, unit="word", reasons=reasons)
