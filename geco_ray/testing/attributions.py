"""The rules of an attribution method."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geco_ray.errors import UserError
from geco_ray.geco.attribution.base import AttributionInputs, AttributionMethod, Scores
from geco_ray.geco.attribution.checks import check_scores
from geco_ray.registry import Entry, Options
from geco_ray.testing.faults import Conformance, check_options, other_random_state, random_sentence, random_states
from geco_ray.testing.toys import toy_encoder, toy_task

if TYPE_CHECKING:
    import torch

    from geco_ray.geco.classifiers import Classifier

_GAP = 1e-3


def check_attribution_method(
    entry: Entry[AttributionMethod], options: Mapping[str, object] | None = None, *, protocol: str = "corrected"
) -> Conformance:
    """Hold a method to its rules on a small corpus and an attention classifier that was trained for a moment.

    Args:
        entry: of the registry. options: that make it quick. protocol: of the classifier and the question.
    """
    found = Conformance(entry.name, "attribution method")
    parsed = check_options(found, entry, options)
    if parsed is None:
        return found
    inputs = toy_inputs(protocol)
    model = _model_state(inputs.classifier)
    tokens = [row.ids.copy() for row in inputs.sentences]
    scores = found.attempt("scores", lambda: entry.target(inputs, parsed))
    if scores is None or not _check_shape(found, entry.name, inputs, scores):
        return found
    before = random_states()  # at the second time: what is imported at the first may draw names of temporary files
    if found.attempt("scores", lambda: entry.target(toy_inputs(protocol), parsed)) is not None:
        found.add("global random state", random_sentence(before, random_states()))
    told = "the tokens were changed; work on a copy"
    same = all(np.array_equal(a, b.ids) for a, b in zip(tokens, inputs.sentences, strict=True))
    found.add("inputs untouched", None if same else told)
    found.add("classifier untouched", _model_sentence(model, _model_state(inputs.classifier)))
    found.add("completeness", _completeness_sentence(scores, inputs))
    _check_repeated(found, entry, parsed, inputs, scores)
    return found


def toy_inputs(protocol: str) -> AttributionInputs:
    """Nine sentences of the small corpus, with predictions and gradients that nobody has asked for yet."""
    from geco_ray.geco.protocol import resolve_protocol

    classifier, tokens, device, depends_on = _toy_classifier(protocol)
    return AttributionInputs(
        classifier=classifier, tokens=tokens, rows=tuple(range(9)), protocol=resolve_protocol(protocol), device=device,
        token_budget=256, stream=("toy", "ola_cea", depends_on, 0),
    )  # fmt: skip


@cache
def _toy_classifier(protocol: str) -> tuple[Classifier, Any, torch.device, str]:
    import torch

    from geco_ray.geco.encoders import load_tokenizer
    from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
    from geco_ray.geco.protocol import resolve_protocol
    from geco_ray.geco.tokens import tokenize_task

    device = torch.device("cpu")
    with tempfile.TemporaryDirectory() as folder:
        source = toy_encoder(Path(folder))
        tokens = tokenize_task(toy_task(), load_tokenizer(source))
        paradigm = PARADIGMS.get("ola_cea")
        setup = TrainingSetup(tokens, source, resolve_protocol(protocol), device)
        (trained,) = paradigm.target().train(setup, paradigm.parse_options({"epochs": 3}), [0])
    return trained.module.eval().requires_grad_(False), tokens, device, trained.depends_on


def _check_shape(found: Conformance, name: str, inputs: AttributionInputs, scores: Any) -> bool:
    if not isinstance(scores, Scores):
        what = f"the method returned a {type(scores).__name__}; return geco_ray.geco.attribution.base.Scores"
        return found.add("scores", what)
    if scores.unit not in ("token", "word"):
        return found.add("scores", f"the unit {scores.unit!r} is unknown; say token (all pieces) or word")
    try:
        _, reasons = check_scores(name, inputs, scores)
    except UserError as error:
        return found.add("scores", str(error))
    given = scores.reasons or [None] * len(reasons)
    wrong = [row for row, (why, own) in enumerate(zip(reasons, given, strict=True)) if why is not None and own is None]
    told = "a score is not finite; give None for the row, and a reason in Scores.reasons"
    return found.add("scores", told if wrong else None)


def _model_state(classifier: Classifier) -> dict[str, object]:
    digest = hashlib.sha256()
    for tensor in classifier.state_dict().values():
        digest.update(tensor.detach().cpu().numpy().tobytes())
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return {
        "weights": digest.hexdigest(),
        "hooks": sum(len(getattr(module, name)) for module in classifier.modules() for name in hooks),
        "mode": classifier.training,
        "gradients": any(parameter.requires_grad for parameter in classifier.parameters()),
    }


def _model_sentence(before: Mapping[str, object], after: Mapping[str, object]) -> str | None:
    told = {
        "weights": "the classifier's weights were changed; work on a copy",
        "hooks": "hooks are left on the classifier; remove them in a finally block",
        "mode": "the classifier was left in training mode; put it back to eval()",
        "gradients": "parameters were left with requires_grad; ask for gradients of the embeddings only",
    }
    return next((sentence for key, sentence in told.items() if before[key] != after[key]), None)


def _completeness_sentence(scores: Scores, inputs: AttributionInputs) -> str | None:
    """The gap that the method tells is the one of its scores, and its arrays have one entry per row."""
    if scores.completeness_gap is None or scores.explained_change is None:
        return None
    for row, values in enumerate(scores.values):
        if values is None:
            continue
        gap = float(np.sum(np.asarray(values, np.float64))) - float(scores.explained_change[row])
        if abs(gap - float(scores.completeness_gap[row])) > _GAP * max(1.0, abs(float(scores.explained_change[row]))):
            told = f"row {row} tells a completeness gap of {float(scores.completeness_gap[row]):.4g} and has {gap:.4g}"
            return f"{told}; it is the sum of the scores less explained_change"
    return None


def _check_repeated(
    found: Conformance, entry: Entry[AttributionMethod], options: Options, inputs: AttributionInputs, scores: Scores
) -> None:
    protocol = inputs.protocol.name

    def again() -> Scores:
        with other_random_state():
            return entry.target(toy_inputs(protocol), options)

    def alone() -> list[Any]:
        rows = [replace(toy_inputs(protocol), rows=(row,)) for row in reversed(inputs.rows)]
        return [entry.target(one, options).values[0] for one in rows][::-1]

    second = found.attempt("determinism", again)
    if second is None:
        return
    told = "the same rows got other scores; draw from inputs.random(name, row), and look at no clock"
    if found.add("determinism", None if _same(scores.values, second.values) else told):
        single = found.attempt("alone equals in company", alone)
        if single is not None:
            told = "a row alone got other scores than in company; take batches from inputs.batches(), or one at a time"
            found.add("alone equals in company", None if _same(scores.values, single) else told)


def _same(one: Any, other: Any) -> bool:
    return len(one) == len(other) and all(
        (a is None) == (b is None) and (a is None or np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))
        for a, b in zip(one, other, strict=True)
    )
