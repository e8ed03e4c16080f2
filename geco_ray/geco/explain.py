"""Explain rows of a task's test split with one method, and score the explanations; tables in, tables out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geco_ray.device import memory_budget
from geco_ray.errors import UserError
from geco_ray.geco.attribution.base import (
    ATTRIBUTIONS,
    AttributionInputs,
    AttributionMethod,
    FloatArray,
    ModelOptions,
    Scores,
)
from geco_ray.geco.attribution.checks import check_scores
from geco_ray.geco.metrics import METRICS, RANKING_MEASURES
from geco_ray.geco.passes.memory import with_halved_budget
from geco_ray.geco.protocol import Protocol, resolve_protocol
from geco_ray.geco.scored import ScoredRows
from geco_ray.geco.tokens import IntArray, TaskTokens
from geco_ray.geco.words import normalize_words, outside_shares, token_to_word, truth_share
from geco_ray.registry import Options

if TYPE_CHECKING:
    import torch

    from geco_ray.geco.trained import TrainedClassifier

MEMORY_BYTES = {"cpu": 128 * 2**20, "cuda": 6 * 2**30}
"""What a forward and backward pass may take at most by default, per kind of device; less where less is free."""

_ROW_FIELDS = [
    ("row", pa.int32()),
    ("sentence_idx", pa.int32()),
    ("target", pa.int32()),
    ("gender", pa.string()),
    ("predicted", pa.int32()),
    ("correct", pa.bool_()),
]

_ABOUT_FIELDS = [
    ("unit", pa.string()),
    ("chance", pa.float64()),
    ("special_share", pa.float32()),
    ("prompt_share", pa.float32()),
    ("completeness_gap", pa.float32()),
    ("explained_change", pa.float32()),
]

EXPLANATION_SCHEMA = pa.schema(
    [
        *_ROW_FIELDS,
        ("words", pa.list_(pa.string())),
        ("truth", pa.list_(pa.int8())),
        ("attribution", pa.list_(pa.float32())),
        ("signed", pa.list_(pa.float32())),
        ("reason", pa.string()),
        ("n_steps", pa.int32()),
        *_ABOUT_FIELDS,
    ]
)
"""``attribution``: share of the absolute attribution per word, >= 0 (all zero when the method found nothing); the rest
of 1 is on special tokens, ``special_share``, and on a prompt, ``prompt_share``, both null where there is nothing to
share or the method scores words. ``unit``: what the method scores, ``piece`` or ``word``; ``chance``: the mass accuracy
that random scores of these have in the mean (see :func:`truth_share`). ``signed``: signed attribution per word in the
method's own unit. A row without an attribution has null for every word, and ``reason`` says why.
``completeness_gap``: sum of the signed scores less ``explained_change``, the change of the
explained scalar from the baseline to the sentence. ``n_steps``: where a method chose it, per sentence. The schema's
metadata may hold a ``note``, which belongs under every table of these rows."""

SCORE_SCHEMA = pa.schema(
    [
        *_ROW_FIELDS,
        ("mass_accuracy", pa.float64()),
        ("reason", pa.string()),
        *((name, pa.float64()) for name in RANKING_MEASURES),
        ("ranking_reason", pa.string()),
        *_ABOUT_FIELDS,
    ]
)
"""``reason`` says why mass accuracy is null, ``ranking_reason`` why the ranking measures are; the columns from ``unit``
on are those of :data:`EXPLANATION_SCHEMA`."""


class Explainer:
    """A trained classifier on its device with a task's tokens; explains any of its rows.

    Methods that need the same backward pass share it when they are asked about the same rows one after another. Where
    the device is out of memory, passes are halved, and stay so; ``memory_halvings`` counts how often.

    Args:
        trained: the classifier; its module is moved to ``device``.
        tokens: the task whose test split is explained.
        protocol: ``paper`` or ``corrected``.
        device: where to compute.
        memory_bytes: bound for one pass; changes speed, and results by rounding only.
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
        self.trained, self.tokens, self.device = trained, tokens.laid_out(trained.module.layout), device
        self.protocol: Protocol = resolve_protocol(protocol)
        self.module = trained.module.to(device).eval().requires_grad_(False)
        budget = memory_bytes or memory_budget(device, MEMORY_BYTES.get(device.type, MEMORY_BYTES["cpu"]))
        self.token_budget = max(64, budget // self.module.bytes_per_token)
        self.memory_halvings = 0
        self._rows: tuple[tuple[int, ...], int | None] | None = None
        self._inputs_by_target: dict[tuple[object, ...], AttributionInputs] = {}

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
            UserError: an unknown method or option, a row that the test split does not have, or a method that returned
                something else than one attribution per row (see :func:`check_scores`).
        """
        entry = ATTRIBUTIONS.get(method)
        parsed = options if isinstance(options, Options) else entry.parse_options(dict(options or {}))

        def compute(budget: int) -> pa.Table:
            if budget < self.token_budget:  # what passes of another size have computed is not mixed with it
                self.token_budget, self._inputs_by_target = budget, {}
                self.memory_halvings += 1
            inputs = self._inputs(tuple(rows), self.trained.seed if seed is None else seed, parsed)
            scores = self._scores(entry.target, inputs, parsed)
            values, reasons = check_scores(entry.name, inputs, scores)
            return _explanation_table(inputs, scores, values, reasons)

        table, _ = with_halved_budget(compute, self.token_budget)
        return table

    def _scores(self, method: AttributionMethod, inputs: AttributionInputs, options: Options) -> Scores:
        precision = options.precision if isinstance(options, ModelOptions) else None
        if precision is None:
            return method(inputs, options)
        from geco_ray.geco.passes.precision import reduced_precision

        _ = inputs.classes, inputs.predicted  # in float32, whatever the method computes in
        with reduced_precision(precision, self.device):
            return method(inputs, options)

    def predict(self, rows: Sequence[int]) -> IntArray:
        """The predicted class of each row."""
        return self._inputs(tuple(rows), self.trained.seed, Options()).predicted

    def _inputs(self, rows: tuple[int, ...], seed: int | None, options: Options) -> AttributionInputs:
        """What a method with ``options`` gets; the same rows share predictions, and the same target gradients."""
        if self._rows != (rows, seed):
            self._check_rows(rows)
            self._rows, self._inputs_by_target = (rows, seed), {}
        asked = options if isinstance(options, ModelOptions) else ModelOptions()
        explained = self.protocol.explained_class if asked.explained_class is None else asked.explained_class
        labels = self.tokens.task.labels
        if isinstance(explained, int) and explained >= len(labels):
            raise UserError(
                f"task {self.tokens.task.name!r} has no class to explain of that number",
                where="explained_class",
                found=explained,
                expected=f"0 to {len(labels) - 1}",
            )
        self._check_baseline(asked.baseline)
        key = (explained, asked.scalar, asked.baseline or "pad", asked.precision)
        if key not in self._inputs_by_target:
            known = next(iter(self._inputs_by_target.values())).known if self._inputs_by_target else {}
            self._inputs_by_target[key] = AttributionInputs(
                classifier=self.module,
                tokens=self.tokens,
                rows=rows,
                protocol=self.protocol,
                device=self.device,
                token_budget=self.token_budget,
                stream=(self.tokens.task.name, self.trained.paradigm, self.trained.depends_on, seed),
                explained_class=explained,
                scalar=asked.scalar,
                baseline=asked.baseline or "pad",
                known=known,
            )
        return self._inputs_by_target[key]

    def _check_baseline(self, baseline: str | None) -> None:
        tokenizer = self.tokens.tokenizer
        if baseline in ("mask", "unk") and getattr(tokenizer, f"{baseline}_id") is None:
            raise UserError(
                f"the encoder's tokenizer has no {baseline} token",
                where="baseline",
                expected="pad or zero",
                remedy="Choose one of these for this encoder",
            )

    def _check_rows(self, rows: tuple[int, ...]) -> None:
        count = len(self.tokens.task.test)
        for row in rows:
            if not 0 <= row < count:
                raise UserError(
                    f"the test split of {self.tokens.task.name!r} has no row {row}", expected=f"0 to {count - 1}"
                )


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
    switches, left_out = resolve_protocol(protocol), explanations["reason"].to_pylist()
    columns = {name: explanations[name] for name, _ in (*_ROW_FIELDS, *_ABOUT_FIELDS)}
    for name, metric in METRICS.items():
        columns[name] = pa.array(metric.compute(rows, switches), pa.float64(), from_pandas=True)
    for column, name in (("reason", "mass_accuracy"), ("ranking_reason", RANKING_MEASURES[0])):
        why = rows.why_null(METRICS[name].reasons)
        columns[column] = pa.array([a or b for a, b in zip(left_out, why, strict=True)], pa.string())
    return pa.table([columns[name] for name in SCORE_SCHEMA.names], schema=SCORE_SCHEMA)


def _explanation_table(
    inputs: AttributionInputs, scores: Scores, values: list[FloatArray], reasons: list[str | None]
) -> pa.Table:
    test = [inputs.tokens.task.test[row] for row in inputs.rows]
    special: list[float | None] = [None] * len(test)
    prompt = special
    if scores.unit == "token":
        magnitude, signed = token_to_word(values, inputs.sentences)
        special, prompt = outside_shares(values, inputs.sentences, _special_ids(inputs.tokens))
    else:
        magnitude, signed = normalize_words(values), values
    predicted, target = inputs.predicted, [row.target for row in test]
    columns = {
        "row": inputs.rows,
        "sentence_idx": [row.sentence_idx for row in test],
        "target": target,
        "gender": [row.gender for row in test],
        "predicted": predicted.tolist(),
        "correct": (predicted == np.array(target, np.int64)).tolist(),
        "words": [row.words for row in test],
        "truth": [row.truth for row in test],
        "attribution": [_numbers(value, reason) for value, reason in zip(magnitude, reasons, strict=True)],
        "signed": [_numbers(value, reason) for value, reason in zip(signed, reasons, strict=True)],
        "reason": reasons,
        "n_steps": _column(scores.steps, len(test)),
        "unit": ["piece" if scores.unit == "token" else "word"] * len(test),
        "chance": [truth_share(a, b.truth, scores.unit) for a, b in zip(inputs.sentences, test, strict=True)],
        "special_share": special,
        "prompt_share": prompt,
        "completeness_gap": _column(scores.completeness_gap, len(test)),
        "explained_change": _column(scores.explained_change, len(test)),
    }
    table = pa.table(columns, schema=EXPLANATION_SCHEMA)
    return table.replace_schema_metadata({"note": scores.note}) if scores.note else table


def _special_ids(tokens: TaskTokens) -> frozenset[int]:
    """The ids that the tokenizer marks as special, rather than as text."""
    added = tokens.tokenizer.backend.get_added_tokens_decoder()
    return frozenset(number for number, token in added.items() if token.special)


def _numbers(values: FloatArray, reason: str | None) -> list[float | None]:
    found: list[float | None] = values.tolist()
    return found if reason is None else [None] * len(found)


def _column(values: npt.NDArray[np.generic] | None, count: int) -> list[object]:
    return [None] * count if values is None else list(values.tolist())
