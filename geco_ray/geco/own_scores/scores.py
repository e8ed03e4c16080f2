"""Scores of words, or of pieces with the word of each, against the words that decide: every metric, and chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geco_ray.errors import UserError
from geco_ray.geco.metrics import METRICS, RANKING_MEASURES
from geco_ray.geco.protocol import resolve_protocol
from geco_ray.geco.scored import FloatArray, ScoredRows
from geco_ray.geco.task import Task
from geco_ray.geco.tokens import SPECIAL, TokenRow
from geco_ray.geco.words import normalize_words, token_to_word

if TYPE_CHECKING:
    import pyarrow as pa

PerRow = Sequence[npt.ArrayLike | None] | Mapping[int, npt.ArrayLike | None]
"""One entry per row of the test split, or row to entry."""

NOT_GIVEN = "not_given"


@dataclass(frozen=True, eq=False)
class AttributionScores:
    """The result of :func:`score_attributions`.

    Attributes:
        rows: a row per scored sentence: ``row``, ``sentence_idx``, ``target``, ``gender``, each metric of
            :data:`geco_ray.geco.METRICS` and ``METRIC_chance``, ``reason`` (why mass accuracy is null) and
            ``ranking_reason`` (why the others are).
    """

    rows: pa.Table

    def summary(self) -> dict[str, dict[str, float | int | None]]:
        """Metric to its ``mean``, its mean under ``chance`` on the same rows, and their number ``rows``."""
        found: dict[str, dict[str, float | int | None]] = {}
        for name in METRICS:
            values = np.array(self.rows[name].to_pylist(), np.float64)
            chance = np.array(self.rows[f"{name}_chance"].to_pylist(), np.float64)
            defined = np.isfinite(values)
            means = [float(part[defined].mean()) if defined.any() else None for part in (values, chance)]
            found[name] = {"mean": means[0], "chance": means[1], "rows": int(defined.sum())}
        return found

    def __str__(self) -> str:
        lines = [f"{'metric':<28}{'mean':>8}{'chance':>8}{'rows':>7}"]
        for name, values in self.summary().items():
            mean, chance = (f"{values[key]:.3f}" if values[key] is not None else "-" for key in ("mean", "chance"))
            lines.append(f"{METRICS[name].title:<28}{mean:>8}{chance:>8}{values['rows']:>7}")
        return "\n".join(lines)


def score_attributions(
    task: Task | str,
    attributions: PerRow,
    *,
    words: PerRow | None = None,
    data_dir: Path | None = None,
    protocol: str = "corrected",
) -> AttributionScores:
    """Hold attributions to the truth of a task's test split.

    Args:
        task: a task, or the name of one (see :func:`geco_ray.geco.load_task`).
        attributions: per row of the test split one score per word, or per piece with ``words``; signed or not. A row
            that is None has no attribution and counts as such; rows that a mapping leaves out are not scored.
        words: per row the word of each piece, -1 for special tokens. Pieces are then summed as GECOBench does:
            absolute value, share of all pieces with the special ones, sum over the pieces of a word.
        data_dir: where the user's data lie. protocol: ``paper`` or ``corrected``, which matters to top-k precision.

    Raises:
        UserError: an unknown task or row, another number of scores than words (or of words than pieces), a word that
            the sentence does not have, scores that are no numbers; with the row.
    """
    task = _load(task, data_dir)
    given = _by_row(attributions, "attributions", task)
    index = None if words is None else _by_row(words, "words", task)
    magnitudes: list[FloatArray] = []
    left_out: list[str | None] = []
    for row, value in given.items():
        count = len(task.test[row].words)
        if value is None:
            magnitudes.append(np.full(count, np.nan))
        else:
            magnitudes.append(_magnitude(row, value, count, None if index is None else index.get(row, ())))
        left_out.append(NOT_GIVEN if value is None else None)
    return AttributionScores(_table(task, list(given), magnitudes, left_out, protocol))


def _load(task: Task | str, data_dir: Path | None) -> Task:
    if isinstance(task, Task):
        return task
    from geco_ray.geco.data.dataset import load_task

    return load_task(task, data_dir)


def _by_row(values: PerRow, what: str, task: Task) -> dict[int, npt.ArrayLike | None]:
    rows = len(task.test)
    if isinstance(values, Mapping):
        beyond = [row for row in values if row not in range(rows)]
        if beyond:
            raise UserError(f"the test split of {task.name!r} has no row {beyond[0]}", expected=f"0 to {rows - 1}")
        return dict(values)
    if len(values) != rows:
        remedy = "Give one per row of the test split, or a mapping of rows"
        raise UserError(f"another number of {what} than rows", found=len(values), expected=str(rows), remedy=remedy)
    return dict(enumerate(values))


def _magnitude(row: int, value: npt.ArrayLike, count: int, words: npt.ArrayLike | None) -> FloatArray:
    """The share of each word; NaN for a row with a score that is not finite."""
    where = f"row {row}"
    try:
        scores = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise UserError("the scores are no numbers", where=where, found=value) from None
    if words is None:
        if scores.shape != (count,):
            remedy = "Give one score per word, or words= with the word of each piece"
            raise UserError("another number of scores than words", where=where, found=scores.shape, expected=str(count),
                            remedy=remedy)  # fmt: skip
        return normalize_words([scores])[0]
    index = np.asarray(words)
    if index.shape != scores.shape or index.ndim != 1 or not np.issubdtype(index.dtype, np.integer):
        expected = "one whole number per score"
        raise UserError("scores and words differ", where=where, found=(scores.shape, index.shape), expected=expected)
    if len(index) and not (index.min() >= SPECIAL and index.max() < count):
        wrong = int(index.max()) if index.max() >= count else int(index.min())
        raise UserError("there is no such word", where=where, found=wrong, expected=f"-1 to {count - 1}")
    pieces = TokenRow(np.zeros(len(index), np.int64), index.astype(np.int64), count)
    return token_to_word([scores], [pieces])[0][0]


def _table(
    task: Task, rows: list[int], magnitudes: list[FloatArray], left_out: list[str | None], protocol: str
) -> pa.Table:
    import pyarrow as pa

    test = [task.test[row] for row in rows]
    scored, switches = ScoredRows.of(magnitudes, [row.truth for row in test]), resolve_protocol(protocol)
    columns: dict[str, object] = {
        "row": pa.array(rows, pa.int32()),
        "sentence_idx": pa.array([row.sentence_idx for row in test], pa.int32()),
        "target": pa.array([row.target for row in test], pa.int32()),
        "gender": pa.array([row.gender for row in test], pa.string()),
    }
    counts = [(sum(row.truth), len(row.words)) for row in test]
    for name, metric in METRICS.items():
        columns[name] = pa.array(metric.compute(scored, switches), pa.float64(), from_pandas=True)
        chance = [metric.chance(k, n) if 0 < k < n else None for k, n in counts]
        columns[f"{name}_chance"] = pa.array(chance, pa.float64())
    for column, name in (("reason", "mass_accuracy"), ("ranking_reason", RANKING_MEASURES[0])):
        why = scored.why_null(METRICS[name].reasons)
        columns[column] = pa.array([a or b for a, b in zip(left_out, why, strict=True)], pa.string())
    return pa.table(columns)
