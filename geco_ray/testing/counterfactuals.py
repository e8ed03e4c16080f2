"""The rules of a counterfactual method."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from geco_ray.cfe.decision import favourable
from geco_ray.cfe.methods.base import Answer, Claim, GenerationTask, Prepare
from geco_ray.registry import Entry
from geco_ray.testing.faults import Conformance, check_options, other_random_state, random_sentence, random_states
from geco_ray.testing.toys import toy_table

Rows = npt.NDArray[np.float64]
_REQUESTS = 12
_ARRAYS = ("train_x", "train_y", "update_x", "update_y", "val_x", "val_y")


def check_counterfactual_method(
    entry: Entry[Prepare], options: Mapping[str, object] | None = None, *, protocol: str = "paper"
) -> Conformance:
    """Hold a method to its rules on a small table: what :mod:`geco_ray.cfe.methods.base` asks of it.

    Args:
        entry: of the registry. options: that make it quick. protocol: of the task.
    """
    found = Conformance(entry.name, "counterfactual method")
    parsed = check_options(found, entry, options)
    if parsed is None:
        return found
    table = toy_table(protocol)
    task, factuals = table.task, table.factuals[:_REQUESTS]
    kept = {name: getattr(task, name).copy() for name in _ARRAYS}
    prepared = found.attempt("prepare", lambda: entry.target(task, parsed))
    if prepared is None:
        return found
    if not _check_prepared(found, prepared):
        return found
    given, ids = factuals.copy(), list(range(len(factuals)))
    answers = found.attempt("generate", lambda: prepared.generate(given, ids))
    if answers is None or not _check_answers(found, answers, factuals):
        return found
    before = random_states()  # at the second time: what is imported at the first may draw names of temporary files
    if found.attempt("generate", lambda: entry.target(task, parsed).generate(factuals.copy(), list(ids))) is not None:
        found.add("global random state", random_sentence(before, random_states()))
    untouched = np.array_equal(given, factuals) and all(np.array_equal(getattr(task, n), kept[n]) for n in _ARRAYS)
    sentence = "the factuals or the task's arrays were changed; work on a copy"
    found.add("inputs untouched", None if untouched else sentence)
    _check_repeated(found, entry, parsed, protocol, factuals, answers)
    none = found.attempt("no requests", lambda: prepared.generate(np.empty((0, factuals.shape[1])), []))
    if none is not None:
        found.add("no requests", None if len(none) == 0 else "no requests got answers; give an empty list")
    _check_accepted(found, task, answers)
    return found


def _check_prepared(found: Conformance, prepared: Any) -> bool:
    if not callable(getattr(prepared, "generate", None)):
        what = f"prepare returned {type(prepared).__name__}, which has no generate; return an object that has it"
        return found.add("prepare", what)
    if not isinstance(getattr(prepared, "set_up", None), Mapping):
        return found.add("set_up", "there is no mapping set_up; give what preparing found, or an empty one")
    try:
        json.dumps({key: getattr(value, "item", lambda v=value: v)() for key, value in prepared.set_up.items()})
        return found.add("set_up", None)
    except (TypeError, ValueError):
        return found.add("set_up", "set_up holds more than text, numbers and truth values; the record cannot keep it")


def _check_answers(found: Conformance, answers: Any, factuals: Rows) -> bool:
    """Number, type and shape of the answers; True if they can be compared."""
    if not isinstance(answers, Sequence) or len(answers) != len(factuals):
        count = len(answers) if isinstance(answers, Sequence) else type(answers).__name__
        return found.add("one answer per request", f"{len(factuals)} requests got {count}; give a list of one each")
    sentence = next((told for answer in answers if (told := _answer_sentence(answer, factuals.shape[1]))), None)
    if not found.add("answer", sentence):
        return False
    keys = {tuple(sorted(answer.columns)) for answer in answers}
    return found.add("columns", None if len(keys) == 1 else "answers have other columns; give each the same keys")


def _answer_sentence(answer: Any, width: int) -> str | None:
    if not isinstance(answer, Answer):
        return f"an answer is a {type(answer).__name__}; return geco_ray.cfe.methods.base.Answer"
    if answer.status not in get_args(Claim):
        return f"the status {answer.status!r} is unknown; take {', '.join(get_args(Claim))}"
    wrong = [key for key, value in answer.columns.items() if not isinstance(value, str | int | float | bool | None)]
    if wrong:
        return f"the column {wrong[0]!r} holds a {type(answer.columns[wrong[0]]).__name__}; give plain values"
    if answer.point is None:
        if answer.status == "found":
            return "an answer is found and has no point; give the point, or the status not_found"
        return None if answer.reason else "an answer without a point has no reason; say why in a few fixed words"
    shape = np.shape(answer.point)
    if shape != (width,):
        return f"a point has the shape {shape}; return the whole row, ({width},)"
    if not np.isfinite(np.asarray(answer.point, float)).all():
        return "a point is not finite; give not_found with a reason instead"
    return None if answer.status == "found" else f"an answer has a point and the status {answer.status}; say found"


def _check_repeated(
    found: Conformance, entry: Entry[Prepare], options: Any, protocol: str, factuals: Rows, answers: Sequence[Answer]
) -> None:
    """The same again, in another global random state, and each alone and in another order."""
    ids = list(range(len(factuals)))

    def again() -> list[Answer]:
        with other_random_state():
            return entry.target(toy_table(protocol).task, options).generate(factuals.copy(), list(ids))

    def alone() -> list[Answer]:
        prepared = entry.target(toy_table(protocol).task, options)
        return [prepared.generate(factuals[[i]].copy(), [i])[0] for i in reversed(ids)][::-1]

    second = found.attempt("determinism", again)
    if second is not None:
        told = "the same requests got other answers; draw from task.stream(name, factual_id), and look at no clock"
        found.add("determinism", None if _same(answers, second) else told)
    if second is None or _same(answers, second):
        single = found.attempt("alone equals in company", alone)
        if single is not None:
            told = "a request alone got another answer than in company; let no row, order or state decide another's"
            found.add("alone equals in company", None if _same(answers, single) else told)


def _same(one: Sequence[Answer], other: Sequence[Answer]) -> bool:
    return len(one) == len(other) and all(
        a.status == b.status
        and a.reason == b.reason
        and (a.point is None) == (b.point is None)
        and (a.point is None or np.array_equal(a.point, np.asarray(b.point)))
        and dict(a.columns) == dict(b.columns)
        for a, b in zip(one, other, strict=True)
    )


def _check_accepted(found: Conformance, task: GenerationTask, answers: Sequence[Answer]) -> None:
    points = [np.asarray(answer.point, float) for answer in answers if answer.point is not None]
    if not points:
        found.add("answers", "no request got a point, on a table where every one has; search further")
        return
    accepted = int(favourable(task.model.probability(np.array(points))).sum())
    told = "the base model accepts none of the returned points; ask task.model.favourable before you return one"
    found.add("answers", None if accepted else told)
