"""Components that break a rule are caught, each with the sentence that helps; what we ship breaks none."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from pydantic import Field

from geco_ray.cfe.changes.base import FAMILIES, levelled_specs
from geco_ray.cfe.methods.base import Answer
from geco_ray.cfe.training import base_job
from geco_ray.errors import UserError
from geco_ray.geco.attribution.base import ATTRIBUTIONS, Scores
from geco_ray.geco.paradigms.base import PARADIGMS
from geco_ray.registry import Entry, NoOptions, Options
from geco_ray.scaffold import KINDS, write_new
from geco_ray.testing import (
    Conformance,
    check,
    check_attribution_method,
    check_change_family,
    check_counterfactual_method,
    check_paradigm,
)


def entry(target: Any, options: type[Options] = NoOptions) -> Entry[Any]:
    return Entry("bad", "Bad", target, options, "outside")


def sentences(found: Conformance) -> str:
    return "\n".join(map(str, found.faults))


class Method:
    """A good method, the nearest favourable row; a misbehaving one changes one thing."""

    set_up: Any = MappingProxyType({})

    def __init__(self, task: Any) -> None:
        self.task, self.rows = task, task.train_x[task.model.favourable(task.train_x)].astype(float)
        self.calls = 0

    def point(self, factual: np.ndarray) -> np.ndarray:
        row: np.ndarray = self.rows[np.abs(self.rows - factual).sum(1).argmin()]
        return row

    def generate(self, factuals: np.ndarray, ids: Any) -> Any:
        return [self.answer(factual, i) for factual, i in zip(factuals, ids, strict=True)]

    def answer(self, factual: np.ndarray, request: int) -> Any:
        return Answer(self.point(factual), "found")


def method(**changes: Any) -> Callable[[Any, Any], Any]:
    kind = type("Bad", (Method,), changes)
    return lambda task, options: kind(task)


def raises(*arguments: Any) -> Any:
    raise ValueError("no idea")


def on_every_second(self: Method, factual: np.ndarray, request: int) -> Answer:
    return raises() if request % 2 else Answer(self.point(factual), "found")


def writes_its_input(self: Method, factuals: np.ndarray, ids: Any) -> Any:
    answers = [Answer(self.point(row), "found") for row in factuals]
    factuals += 1
    return answers


def writes_the_task(self: Method, factual: np.ndarray, request: int) -> Answer:
    answer = Answer(self.point(factual), "found")
    self.task.train_x[0] = 0
    return answer


def draws_globally(self: Method, factual: np.ndarray, request: int) -> Answer:
    random.random()
    return Answer(self.point(factual), "found")


def depends_on_global_state(self: Method, factual: np.ndarray, request: int) -> Answer:
    return Answer(self.point(factual) + np.random.random() * 1e-6, "found")


def looks_at_the_clock(self: Method, factual: np.ndarray, request: int) -> Answer:
    return Answer(self.point(factual), "found", None, {"seconds": time.perf_counter()})


def depends_on_the_batch(self: Method, factuals: np.ndarray, ids: Any) -> Any:
    return [Answer(self.point(factuals.mean(0)), "found") for _ in ids]


def counts_its_calls(self: Method, factual: np.ndarray, request: int) -> Answer:
    self.calls += 1
    return Answer(self.point(factual), "found", None, {"call": self.calls})


def other_columns(self: Method, factual: np.ndarray, request: int) -> Answer:
    return Answer(self.point(factual), "found", None, {"a" if request else "b": 1})


def gives(*arguments: Any) -> Callable[[Method, np.ndarray, int], Any]:
    return lambda self, factual, request: Answer(*arguments)


METHODS = {
    "prepare raises": (raises, "prepare: it raised ValueError: no idea"),
    "prepare forgets to return": (lambda task, options: None, "prepare: it returned nothing"),
    "prepare gives a number": (lambda task, options: 3, "prepare returned int, which has no generate"),
    "no set_up": (method(set_up=None), "there is no mapping set_up"),
    "set_up of arrays": (method(set_up={"a": np.ones(3)}), "set_up holds more than text, numbers and truth values"),
    "raises at times": (method(answer=on_every_second), "generate: it raised ValueError: no idea"),
    "too few answers": (method(generate=lambda self, f, i: []), "12 requests got 0; give a list of one each"),
    "rows for answers": (method(answer=lambda self, f, i: self.point(f)), "an answer is a ndarray; return"),
    "row of another type": (method(answer=gives(np.ones((1, 4)), "found")), "a point has the shape (1, 4)"),
    "a point of NaN": (method(answer=gives(np.full(4, np.nan), "found")), "a point is not finite"),
    "unknown status": (method(answer=gives(None, "lost")), "the status 'lost' is unknown; take found"),
    "found without a point": (method(answer=gives(None, "found")), "an answer is found and has no point"),
    "no reason": (method(answer=gives(None, "not_found")), "an answer without a point has no reason"),
    "arrays as columns": (method(answer=gives(np.ones(4), "found", None, {"a": np.ones(2)})), "the column 'a' holds"),
    "other columns": (method(answer=other_columns), "answers have other columns"),
    "writes its input": (method(generate=writes_its_input), "inputs untouched: the factuals or the task's arrays"),
    "writes the task": (method(answer=writes_the_task), "inputs untouched: the factuals or the task's arrays"),
    "draws globally": (method(answer=draws_globally), "the global generator of random was used or set"),
    "depends on a global": (method(answer=depends_on_global_state), "determinism: the same requests got other"),
    "looks at the clock": (method(answer=looks_at_the_clock), "determinism: the same requests got other answers"),
    "depends on the batch": (method(generate=depends_on_the_batch), "alone equals in company: a request alone"),
    "counts its calls": (method(answer=counts_its_calls), "alone equals in company: a request alone got another"),
    "never accepted": (method(answer=lambda self, f, i: Answer(f - 9, "found")), "the base model accepts none"),
    "never a point": (method(answer=gives(None, "not_found", "none")), "no request got a point"),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_misbehaving_counterfactual_method_is_caught(name: str) -> None:
    target, said = METHODS[name]
    assert said in sentences(check_counterfactual_method(entry(target)))


def test_a_good_method_has_no_fault() -> None:
    found = check_counterfactual_method(entry(method()))
    assert found.faults == []
    assert len(found.passed) >= 10


def token_scores(inputs: Any) -> list[np.ndarray]:
    return [np.arange(1.0, len(row) + 1) for row in inputs.sentences]


def leaves_a_hook(inputs: Any, options: Any) -> Scores:
    inputs.classifier.register_forward_hook(lambda *arguments: None)
    return Scores(token_scores(inputs))


def changes_the_classifier(inputs: Any, options: Any) -> Scores:
    next(inputs.classifier.parameters()).data[0] += 1
    return Scores(token_scores(inputs))


def leaves_training_mode(inputs: Any, options: Any) -> Scores:
    inputs.classifier.train()
    return Scores(token_scores(inputs))


def draws_scores(inputs: Any, options: Any) -> Scores:
    return Scores([np.random.random(len(row)) for row in inputs.sentences])


def divides_by_all_rows(inputs: Any, options: Any) -> Scores:
    return Scores([values / len(inputs.rows) for values in token_scores(inputs)])


def tells_a_wrong_gap(inputs: Any, options: Any) -> Scores:
    count = len(inputs.rows)
    return Scores(token_scores(inputs), completeness_gap=np.zeros(count), explained_change=np.zeros(count))


ATTRIBUTING = {
    "raises": (raises, "scores: it raised ValueError: no idea"),
    "a list": (lambda inputs, options: token_scores(inputs), "the method returned a list"),
    "another unit": (lambda inputs, options: Scores(token_scores(inputs), unit="piece"), "the unit 'piece' is unknown"),
    "a row too few": (lambda inputs, options: Scores(token_scores(inputs)[1:]), "another number of attributions"),
    "pieces as words": (lambda inputs, options: Scores(token_scores(inputs), unit="word"), "test row 0"),
    "not finite": (lambda inputs, options: Scores([x * np.nan for x in token_scores(inputs)]), "a score is not finite"),
    "a hook": (leaves_a_hook, "hooks are left on the classifier"),
    "another classifier": (changes_the_classifier, "the classifier's weights were changed"),
    "training mode": (leaves_training_mode, "the classifier was left in training mode"),
    "draws globally": (draws_scores, "determinism: the same rows got other scores"),
    "company": (divides_by_all_rows, "alone equals in company: a row alone got other scores"),
    "completeness": (tells_a_wrong_gap, "completeness: row 0 tells a completeness gap of 0 and has"),
}


@pytest.fixture
def own_classifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the small classifier for a method that spoils it."""
    import copy

    from geco_ray.testing import attributions

    kept = copy.deepcopy(attributions._toy_classifier("corrected"))
    monkeypatch.setattr(attributions, "_toy_classifier", lambda protocol: kept)


@pytest.mark.parametrize("name", ATTRIBUTING)
def test_a_misbehaving_attribution_method_is_caught(name: str, own_classifier: None) -> None:
    target, said = ATTRIBUTING[name]
    assert said in sentences(check_attribution_method(entry(target)))


class Family:
    """A good family, two draws of the training rows; a misbehaving one changes one thing."""

    def specs(self, base: Any) -> Any:
        return levelled_specs("bad", [("level", 0, 1), ("level", 1, 2)])

    def change(self, spec: Any, base: Any, pool: Any) -> Any:
        job = base_job(pool, base.key.initial_seed, base.model.hidden)
        job.rows[:3] = spec.seed
        return job


def draws_rows(self: Family, spec: Any, base: Any, pool: Any) -> Any:
    job = Family.change(self, spec, base, pool)
    job.rows[:] = np.random.randint(0, 5, len(job.rows))
    return job


CHANGING = {
    "no list": ({"specs": lambda self, base: ()}, "specs gave no list of VariantSpec"),
    "too many": ({"specs": lambda self, base: levelled_specs("bad", [("a", r, r) for r in range(26)])}, "26 variants"),
    "another name": ({"specs": lambda self, base: levelled_specs("good", [("a", 0, 0)])}, "are of the family 'good'"),
    "twice": (
        {"specs": lambda self, base: levelled_specs("bad", [("a", 0, 0)] * 2)},
        "two variants have one change_id",
    ),
    "random specs": (
        {"specs": lambda self, base: levelled_specs("bad", [("a", 0, random.randint(0, 10**9))])},
        "specs differ from call to call",
    ),
    "nothing": ({"change": lambda self, spec, base, pool: None}, "change: it returned nothing"),
    "rows": ({"change": lambda self, spec, base, pool: pool.x}, "change returned a ndarray"),
    "random rows": ({"change": draws_rows}, "the same variant is another one from call to call"),
}


@pytest.mark.parametrize("name", CHANGING)
def test_a_misbehaving_change_family_is_caught(name: str) -> None:
    changes, said = CHANGING[name]
    assert said in sentences(check_change_family(entry(type("Bad", (Family,), changes))))


def test_a_good_family_has_no_fault() -> None:
    assert check_change_family(entry(Family)).faults == []


def bag(**changes: Any) -> type[Any]:
    return type("Bad", (PARADIGMS.get("ola_cea").target,), changes)


def test_a_misbehaving_paradigm_is_caught() -> None:
    known = PARADIGMS.get("ola_cea")
    for changes, said in (
        ({"depends_on": "weather"}, "depends_on is neither encoder nor tokenizer"),
        ({"train": raises}, "train: it raised ValueError: no idea"),
        ({"train": lambda *arguments: iter(())}, "2 seeds gave 0 classifiers"),
        ({}, "the classifier says it is of 'ola_cea'"),
    ):
        target = Entry("bad", "Bad", bag(**changes), known.options, "outside")
        assert said in sentences(check_paradigm(target, {"epochs": 1}))


class Hidden(Options):
    secret: int = Field(1, exclude=True)


class Mutable(Options, frozen=False):
    steps: int = 1


def local_options() -> type[Options]:
    class Local(Options):
        steps: int = 1

    return Local


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (Hidden, "the options ['secret'] are excluded from the dump"),
        (Mutable, "options can be changed"),
        (local_options(), "Ray cannot send the options"),
    ],
)
def test_misbehaving_options_are_caught(options: type[Options], said: str) -> None:
    assert said in sentences(check_counterfactual_method(entry(method(), options)))


@pytest.mark.parametrize("name", FAMILIES.names())
def test_every_family_keeps_to_the_rules(name: str) -> None:
    assert check(name).faults == []


QUICK = {"kernel_shap": {"n_samples": 20}, "lime": {"n_samples": 20}, "integrated_gradients": {"n_steps": 5}}


@pytest.mark.parametrize("name", ATTRIBUTIONS.names())
def test_every_attribution_method_keeps_to_the_rules(name: str) -> None:
    known = {
        key: value for key, value in QUICK.get(name, {}).items() if key in ATTRIBUTIONS.get(name).options.model_fields
    }
    assert check_attribution_method(ATTRIBUTIONS.get(name), known).faults == []


@pytest.mark.parametrize("name", PARADIGMS.names())
def test_every_paradigm_keeps_to_the_rules(name: str) -> None:
    entry = PARADIGMS.get(name)
    quick = {"epochs": 1} if "epochs" in entry.options.model_fields else {}
    assert check_paradigm(entry, quick).faults == []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "dataset"])
def test_what_new_writes_keeps_to_the_rules(kind: str, tmp_path: Path) -> None:
    component, test = write_new(kind, f"brand_new_{kind}", tmp_path)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert component.name == f"brand_new_{kind}.py"


def test_a_new_data_set_is_read(tmp_path: Path) -> None:
    from geco_ray.cfe.data.datasets import load_dataset

    write_new("dataset", "brand_new", tmp_path)
    assert load_dataset("brand_new", tmp_path).features == ("age", "income")


def test_faults_are_told_on_the_command_line(tmp_path: Path) -> None:
    (path, _) = write_new("counterfactual", "clumsy", tmp_path)
    path.write_text(path.read_text().replace("return [Answer(", "factuals += 1\n        return [Answer("))
    words = [sys.executable, "-m", "geco_ray", "test", f"{path}:clumsy"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "fault inputs untouched: the factuals or the task's arrays were changed; work on a copy" in done.stdout
    missing = subprocess.run([*words[:-1], f"{path}:clumsi"], capture_output=True, text=True, check=False)
    assert "Did you mean 'clumsy'?" in missing.stderr
    again = subprocess.run(
        [*words[:-2], "new", "counterfactual", "clumsy"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "clumsy.py: the file is there already" in again.stderr


@pytest.mark.parametrize("name", ["lambda", "none", "json"])
def test_a_name_of_python_s_own_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="one of Python's own"):
        write_new("attribution", name, tmp_path)
    assert not list(tmp_path.iterdir())
