"""Explain rows of a task's test split with one method, and score the explanations; tables in, tables out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from geco_ray.errors import UserError
from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, Scores
from geco_ray.geco.metrics import METRICS, RANKING_MEASURES
from geco_ray.geco.protocol import Protocol, resolve_protocol
from geco_ray.geco.scored import ScoredRows
from geco_ray.geco.tokens import IntArray, TaskTokens, equal_length_batches, pad_rows
from geco_ray.geco.words import normalize_words, token_to_word
from geco_ray.registry import Options

if TYPE_CHECKING:
    import torch

    from geco_ray.geco.trained import TrainedClassifier

MEMORY_BYTES = {"cpu": 128 * 2**20, "cuda": 6 * 2**30}
"""What a forward and backward pass may take by default, per kind of device."""

_ROW_FIELDS = [
    ("row", pa.int32()),
    ("sentence_idx", pa.int32()),
    ("target", pa.int32()),
    ("gender", pa.string()),
    ("predicted", pa.int32()),
    ("correct", pa.bool_()),
]

EXPLANATION_SCHEMA = pa.schema(
    [
        *_ROW_FIELDS,
        ("words", pa.list_(pa.string())),
        ("truth", pa.list_(pa.int8())),
        ("attribution", pa.list_(pa.float32())),
        ("signed", pa.list_(pa.float32())),
        ("completeness_gap", pa.float32()),
    ]
)
"""``attribution``: share of the absolute attribution per word, >= 0 (the rest of 1 lies on special tokens; all zero
when the method found nothing). ``signed``: signed attribution per word in the method's own unit."""

SCORE_SCHEMA = pa.schema(
    [
        *_ROW_FIELDS,
        ("mass_accuracy", pa.float64()),
        ("reason", pa.string()),
        *((name, pa.float64()) for name in RANKING_MEASURES),
        ("ranking_reason", pa.string()),
    ]
)
"""``reason`` says why mass accuracy is null, ``ranking_reason`` why the ranking measures are."""


class Explainer:
    """A trained classifier on its device with a task's tokens; explains any of its rows.

    Methods that need the same backward pass share it when they are asked about the same rows one after another.

    Args:
        trained: the classifier; its module is moved to ``device``.
        tokens: the task whose test split is explained.
        protocol: ``paper`` or ``corrected``.
        device: where to compute.
        memory_bytes: bound for one pass; changes speed, not results.
    """

    def __init__(
        self,
        trained: TrainedClassifier,
        tokens: TaskTokens,
        *,
        protocol: str,
        device: torch.device,
        memory_bytes: int | None = None,
    ) -> None:
        self.trained, self.tokens, self.device = trained, tokens, device
        self.protocol: Protocol = resolve_protocol(protocol)
        self.module = trained.module.to(device).eval().requires_grad_(False)
        budget = memory_bytes or MEMORY_BYTES.get(device.type, MEMORY_BYTES["cpu"])
        self.token_budget = max(64, budget // self.module.bytes_per_token)
        self._last: tuple[tuple[int, ...], int | None, AttributionInputs, IntArray] | None = None

    def explain(
        self,
        rows: Sequence[int],
        method: str,
        options: Options | Mapping[str, object] | None = None,
        *,
        seed: int | None = None,
    ) -> pa.Table:
        """Explanations of ``rows`` (indices in the test split), in that order; see :data:`EXPLANATION_SCHEMA`.

        Raises:
            UserError: an unknown method or option, or a row that the test split does not have.
        """
        entry = ATTRIBUTIONS.get(method)
        parsed = options if isinstance(options, Options) else entry.parse_options(dict(options or {}))
        inputs, predicted = self._inputs(tuple(rows), self.trained.seed if seed is None else seed)
        scores = entry.target(inputs, parsed)
        return _explanation_table(inputs, scores, predicted)

    def predict(self, rows: Sequence[int]) -> IntArray:
        """The predicted class of each row.

        Where padding changes predictions (``paper``'s OLA-CEA) the rows are padded to the longest sentence of the
        split, as in the published evaluation; the explanation itself is of the unpadded sentence.
        """
        import torch

        sentences = [self.tokens.test[row] for row in rows]
        padded = self.tokens.longest_test if self.module.padding_matters else None
        lengths = [padded or len(sentence) for sentence in sentences]
        predicted = np.zeros(len(rows), np.int64)
        with torch.no_grad():
            for batch in equal_length_batches(lengths, self.token_budget):
                ids, _ = pad_rows([sentences[i] for i in batch], self.tokens.tokenizer.pad_id, padded)
                logits = self.module(torch.from_numpy(ids).to(self.device), None)
                predicted[batch] = logits.argmax(1).cpu().numpy()
        return predicted

    def _inputs(self, rows: tuple[int, ...], seed: int | None) -> tuple[AttributionInputs, IntArray]:
        if self._last is not None and self._last[:2] == (rows, seed):
            return self._last[2:]
        test = self.tokens.task.test
        for row in rows:
            if not 0 <= row < len(test):
                raise UserError(
                    f"the test split of {self.tokens.task.name!r} has no row {row}", expected=f"0 to {len(test) - 1}"
                )
        predicted = self.predict(rows)
        true = np.array([test[row].target for row in rows], np.int64)
        inputs = AttributionInputs(
            classifier=self.module,
            tokens=self.tokens,
            rows=rows,
            classes=predicted if self.protocol.explained_class == "predicted" else true,
            protocol=self.protocol,
            device=self.device,
            token_budget=self.token_budget,
            stream=(self.tokens.task.name, self.trained.paradigm, self.trained.depends_on, seed),
        )
        self._last = (rows, seed, inputs, predicted)
        return inputs, predicted


def explain(
    trained: TrainedClassifier,
    tokens: TaskTokens,
    rows: Sequence[int],
    method: str,
    options: Options | Mapping[str, object] | None = None,
    *,
    protocol: str,
    device: torch.device,
    seed: int | None = None,
) -> pa.Table:
    """One method, one set of rows; see :class:`Explainer`. ``seed`` names random streams, default the classifier's."""
    return Explainer(trained, tokens, protocol=protocol, device=device).explain(rows, method, options, seed=seed)


def score(explanations: pa.Table, *, protocol: str = "corrected") -> pa.Table:
    """Mass accuracy and ranking measures of each explanation, in the same order; see :data:`SCORE_SCHEMA`."""
    rows = ScoredRows.of(explanations["attribution"].to_pylist(), explanations["truth"].to_pylist())
    switches = resolve_protocol(protocol)
    columns = {name: explanations[name] for name, _ in _ROW_FIELDS}
    for name, metric in METRICS.items():
        columns[name] = pa.array(metric.compute(rows, switches), pa.float64(), from_pandas=True)
    for column, name in (("reason", "mass_accuracy"), ("ranking_reason", RANKING_MEASURES[0])):
        columns[column] = pa.array(rows.why_null(METRICS[name].reasons), pa.string())
    return pa.table([columns[name] for name in SCORE_SCHEMA.names], schema=SCORE_SCHEMA)


def _explanation_table(inputs: AttributionInputs, scores: Scores, predicted: IntArray) -> pa.Table:
    test = [inputs.tokens.task.test[row] for row in inputs.rows]
    if scores.unit == "token":
        magnitude, signed = token_to_word(scores.values, inputs.sentences)
    else:
        magnitude, signed = normalize_words(scores.values), [np.asarray(value, np.float64) for value in scores.values]
    gap = scores.completeness_gap
    target = [row.target for row in test]
    columns = {
        "row": inputs.rows,
        "sentence_idx": [row.sentence_idx for row in test],
        "target": target,
        "gender": [row.gender for row in test],
        "predicted": predicted.tolist(),
        "correct": (predicted == np.array(target, np.int64)).tolist(),
        "words": [row.words for row in test],
        "truth": [row.truth for row in test],
        "attribution": [value.tolist() for value in magnitude],
        "signed": [value.tolist() for value in signed],
        "completeness_gap": [None] * len(test) if gap is None else gap.tolist(),
    }
    return pa.table(columns, schema=EXPLANATION_SCHEMA)
