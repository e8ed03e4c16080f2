"""Attributions of one's own get the numbers that a grid's get, and a wrong one is named by its row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import geco_ray
from geco_ray.errors import UserError
from geco_ray.geco.explain import EXPLANATION_SCHEMA, score
from geco_ray.geco.metrics import METRICS
from geco_ray.geco.task import Task
from geco_ray.geco.tokens import TaskTokens
from geco_ray.geco.words import token_to_word


def test_pieces_get_the_numbers_of_a_grid(tiny_tokens: TaskTokens) -> None:
    random = np.random.default_rng(0)
    pieces = [random.standard_normal(len(row)) for row in tiny_tokens.test]
    words = [row.words for row in tiny_tokens.test]
    found = geco_ray.score_attributions(tiny_tokens.task, pieces, words=words).rows
    test = tiny_tokens.task.test
    columns: dict[str, Any] = {name: [None] * len(test) for name in EXPLANATION_SCHEMA.names}
    columns |= {"attribution": token_to_word(pieces, tiny_tokens.test)[0], "truth": [row.truth for row in test]}
    expected = score(pa.table(columns, schema=EXPLANATION_SCHEMA))
    for name in METRICS:
        rounded = [value if value is None else pytest.approx(value, abs=1e-6) for value in expected[name].to_pylist()]
        assert found[name].to_pylist() == rounded


def test_signs_and_units_do_not_matter(tiny_task: Task) -> None:
    scores = [np.arange(1.0, len(row.words) + 1) for row in tiny_task.test]
    plain = geco_ray.score_attributions(tiny_task, scores).rows
    assert geco_ray.score_attributions(tiny_task, [-100 * value for value in scores]).rows == plain


def test_what_is_missing_is_counted(tiny_task: Task) -> None:
    words = len(tiny_task.test[1].words)
    result = geco_ray.score_attributions(tiny_task, {1: np.ones(words), 2: None, 0: [np.nan] * words})
    assert result.rows["row"].to_pylist() == [1, 2, 0]
    assert result.rows["reason"].to_pylist() == [None, "not_given", "non_finite_attribution"]
    assert result.summary()["mass_accuracy"]["rows"] == 1
    mean, chance = (result.summary()["mass_accuracy"][key] for key in ("mean", "chance"))
    assert mean == pytest.approx(chance)


@pytest.mark.parametrize(
    ("scores", "words", "said"),
    [
        ({99: [1]}, None, "has no row 99"),
        ([[1]], None, "another number of attributions than rows"),
        ({0: [1.0]}, None, "row 0: another number of scores than words"),
        ({0: ["a"]}, None, "row 0: the scores are no numbers"),
        ({0: [1.0, 2.0]}, {0: [0]}, "row 0: scores and words differ"),
        ({0: [1.0]}, {0: [50]}, "row 0: there is no such word"),
        ({0: [1.0]}, {0: [-2]}, "row 0: there is no such word"),
        ({0: [1.0]}, {1: [0]}, "row 0: scores and words differ"),
    ],
)
def test_a_wrong_attribution_is_named_by_its_row(tiny_task: Task, scores: Any, words: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        geco_ray.score_attributions(tiny_task, scores, words=words)


def test_a_task_may_be_named() -> None:
    assert geco_ray.score_attributions("demo_binary_all", {}).rows.num_rows == 0
