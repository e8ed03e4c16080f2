"""Counterfactuals of anybody's classifier, tried on changed versions of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import geco_ray
from geco_ray.cfe.survival.result import Survival
from geco_ray.cfe.survival.torch_classifier import TorchClassifier
from geco_ray.errors import UserError

Problem = dict[str, Any]


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Sixty rows of two numbers, four rejected ones and their counterfactuals: far, near, too near, none."""
    stream = np.random.default_rng(0)
    x = stream.normal(size=(60, 2))
    y = (x[:, 0] + 0.3 * stream.normal(size=60) > 0).astype(int)
    factuals = np.array([[-1.0, 0.0], [-1.0, 0.5], [-1.5, 0.0], [-1.0, 1.0]])
    points = [[2.0, 0.0], [0.3, 0.5], [-1.4, 0.0], None]
    return {"X": x, "y": y, "factuals": factuals, "counterfactuals": points}


def fitted(estimator: Any, problem: Problem) -> Any:
    return estimator.fit(problem["X"], problem["y"])


def row(result: Survival, family: str) -> dict[str, Any]:
    (found,) = [r for r in result.summary.to_pylist() if r["family"] == family]
    return found


def test_a_family_that_changes_nothing_is_named_so_and_never_robust(problem: Problem) -> None:
    result = geco_ray.survival(fitted(LogisticRegression(), problem), **problem, families=["seed", "bootstrap"])
    assert row(result, "seed")["verdict"] == "no change"
    assert row(result, "seed")["empirical_robustness"] is None
    assert "| New seed | 25 | no change | – | – |" in str(result)
    assert row(result, "bootstrap")["verdict"] == "changed"


def test_answers_are_judged_by_the_base_model_and_all_are_counted(problem: Problem) -> None:
    result = geco_ray.survival(fitted(LogisticRegression(), problem), **problem, families=["bootstrap"])
    assert result.requests["status"].to_pylist() == ["found", "found", "base_invalid", "not_found"]
    assert result.requests["changed_columns"].to_pylist() == [1, 1, None, None]
    counts = row(result, "bootstrap")
    assert (counts["request_pairs"], counts["pairs"]) == (100, 50)
    assert counts["end_to_end_robustness"] == counts["survived"] / 100


def test_the_table_has_a_row_per_request_family_and_variant(problem: Problem) -> None:
    result = geco_ray.survival(fitted(LogisticRegression(), problem), **problem, families=["deletion"])
    assert result.table.num_rows == 4 * 25
    survived = [r["survived"] for r in result.table.to_pylist() if r["request"] == 3]
    assert survived == [None] * 25
    assert sum(filter(None, result.table["survived"].to_pylist())) == row(result, "deletion")["survived"]


def test_a_survivor_is_what_the_refitted_model_accepts(problem: Problem) -> None:
    model = fitted(LogisticRegression(), problem)
    setting = {"C": 1e-4}
    result = geco_ray.survival(model, **problem, families=["training_config"], settings=[setting])
    again = LogisticRegression(C=1e-4).fit(problem["X"], problem["y"])
    wanted = (again.predict_proba(problem["counterfactuals"][:2])[:, 1] >= 0.5).tolist()
    assert result.table["survived"].to_pylist()[:2] == wanted
    assert result.table["level"].to_pylist()[0] == "C=0.0001"


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(3, random_state=0),
        GradientBoostingClassifier(n_estimators=3, random_state=0, subsample=0.5),
        make_pipeline(StandardScaler(), LogisticRegression()),
        MLPClassifier((4,), max_iter=5, random_state=0),
        TorchClassifier("set below", epochs=5),  # type: ignore[arg-type]
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_models_of_every_kind_are_tried(problem: Problem, estimator: Any) -> None:
    if isinstance(estimator, TorchClassifier):
        import torch

        estimator = TorchClassifier(lambda d: torch.nn.Linear(d, 1), epochs=5)
    more = (problem["X"] + 0.1, problem["y"])
    result = geco_ray.survival(estimator, **problem, update=more)
    verdicts = {r["family"]: r["verdict"] for r in result.summary.to_pylist()}
    assert {"bootstrap", "deletion", "data_addition", "label_update"} <= {
        f for f in verdicts if verdicts[f] == "changed"
    }
    assert ("bounded_parameter" in verdicts) == (
        not isinstance(estimator, RandomForestClassifier | GradientBoostingClassifier)
    )
    assert any("was not fitted" in note for note in result.notes)


def test_perturbed_parameters_move_by_the_radius_and_the_model_stays_as_it_was(problem: Problem) -> None:
    from geco_ray.cfe.survival.perturb import perturbed

    model = fitted(LogisticRegression(), problem)
    before = model.coef_.copy()
    moved = perturbed(model, 0.05, np.random.default_rng(0))
    steps = [np.abs(moved.coef_ - model.coef_).max(), np.abs(moved.intercept_ - model.intercept_).max()]
    assert max(steps) == pytest.approx(0.05)
    assert (model.coef_ == before).all()


def test_results_are_the_same_again_and_inputs_and_global_random_state_untouched(problem: Problem) -> None:
    model, x = RandomForestClassifier(3), problem["X"].copy()
    np.random.seed(3)
    first = geco_ray.survival(model, **problem, families=["seed"])
    drawn = np.random.random()
    np.random.seed(3)
    assert np.random.random() == drawn
    assert geco_ray.survival(model, **problem, families=["seed"]).table.equals(first.table)
    assert (problem["X"] == x).all()


def test_text_labels_and_text_columns_work_through_a_pipeline() -> None:
    stream = np.random.default_rng(1)
    frame = pd.DataFrame({"age": stream.integers(20, 60, 80), "job": stream.choice(["a", "b"], 80)})
    y = np.where(frame["age"] > 40, "yes", "no")
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["job"]), remainder="passthrough"),
        RandomForestClassifier(5, random_state=0),
    ).fit(frame, y)
    factuals = pd.DataFrame({"age": [25, 30], "job": ["a", "b"]})
    points = pd.DataFrame({"age": [55, 30], "job": ["b", "b"]})
    result = geco_ray.survival(model, frame, y, factuals, points, families=["deletion"], favourable="yes")
    assert result.requests["status"].to_pylist() == ["found", "not_found"]
    scale = np.median(np.abs(frame["age"] - np.median(frame["age"])))
    assert result.requests["distance"].to_pylist()[0] == pytest.approx((30 / scale + 1) / 2)


class Odd:
    """A model that gives what its test wants."""

    def __init__(self, p: list[list[float]] | list[float], classes: list[int] | None = None) -> None:
        self.p = p
        if classes:
            self.classes_ = classes

    def fit(self, X: Any, y: Any) -> Odd:
        return self

    def predict_proba(self, X: Any) -> Any:
        return np.repeat(np.array(self.p)[None], len(X), axis=0)


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([1.0], r"another shape .*found \(4, 1\).* Return numpy.column_stack"),
        ([0.4, 0.5], r"row 0 is no distribution .*0.4, 0.5.*sum to 1"),
        ([float("nan"), 1.0], "no distribution"),
        ([1.5, -0.5], "no distribution"),
        ([0.2, 0.3, 0.5], "another shape"),
    ],
)
def test_probabilities_that_are_none_are_refused(problem: Problem, p: list[float], message: str) -> None:
    points = problem["counterfactuals"][:2] * 2
    with pytest.raises(UserError, match=message):
        geco_ray.survival(Odd(p), **problem | {"counterfactuals": points})


@pytest.mark.parametrize(("classes", "status"), [([0, 1], "base_invalid"), ([1, 0], "found")])
def test_the_favourable_column_is_found_by_the_model_s_classes(
    problem: Problem, classes: list[int], status: str
) -> None:
    result = geco_ray.survival(Odd([0.9, 0.1], classes), **problem, families=["seed"])
    assert result.requests["status"].to_pylist()[0] == status


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.full((60, 2), "old")}, "column 1 holds text, and the model wants numbers.* Encode it"),
        ({"factuals": [[1.0, 2.0, 3.0]] * 4}, "factuals have another number of columns .*found 3, expected 2"),
        ({"counterfactuals": [[1.0, 2.0]]}, "differ in number .*found 1, expected 4"),
        ({"factuals": [1.0, 2.0]}, "factuals are no table"),
        ({"y": np.arange(60)}, "y is not binary"),
        ({"y": np.repeat(["a", "b"], 30)}, "no favourable label .*expected one of .*favourable="),
        ({"y": np.zeros(3)}, "y does not fit its rows"),
        ({"families": ["sed"]}, "unknown change family 'sed'.*seed"),
        ({"families": ["data_addition"]}, "no rows to add.* update=.* Possible here: seed, bootstrap, deletion"),
        ({"families": ["training_config"], "settings": [{"depth": 3}]}, "no setting 'depth'"),
        ({"update": ([[0.0, 0.0]], [7])}, "update has other labels"),
        ({"estimator": LogisticRegression}, "the estimator is a class"),
        ({"estimator": object()}, "has no fit.*TorchClassifier"),
        ({"estimator": SVC()}, "has no predict_proba.*CalibratedClassifierCV"),
        ({"estimator": RandomForestClassifier(2), "families": ["bounded_parameter"]}, "shows no parameters"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_remedy(problem: Problem, change: Problem, message: str) -> None:
    with pytest.raises(UserError, match=message):
        geco_ray.survival(**{"estimator": LogisticRegression(), **problem, **change})


def test_columns_in_another_order_are_refused(problem: Problem) -> None:
    frame = pd.DataFrame(problem["X"], columns=["a", "b"])
    swapped = pd.DataFrame(problem["factuals"], columns=["b", "a"])
    with pytest.raises(UserError, match=r"factuals: column 1 differs .*found 'b', expected 'a'"):
        geco_ray.survival(LogisticRegression(), **problem | {"X": frame, "factuals": swapped})


class Stubborn(LogisticRegression):  # type: ignore[misc]
    """Refuses to learn from fewer than sixty rows."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if len(X) < 60:
            raise RuntimeError("too few rows")
        return super().fit(X, y)


def test_a_variant_that_cannot_be_made_is_counted_and_the_rest_goes_on(problem: Problem) -> None:
    result = geco_ray.survival(Stubborn(), **problem, families=["deletion", "label_update"])
    # One per cent of sixty rows is one row, so all 25 fits fail.
    assert (row(result, "deletion")["failed"], row(result, "deletion")["verdict"]) == (25, "failed")
    assert result.table["reason"].to_pylist()[0] == "RuntimeError: too few rows"
    assert row(result, "label_update")["verdict"] == "changed"


def test_a_report_is_a_page_with_its_table_beside_it(problem: Problem, tmp_path: Path) -> None:
    result = geco_ray.survival(LogisticRegression(), **problem, families=["bootstrap"])
    page = result.report(tmp_path / "trial.html")
    assert "Bootstrap" in page.read_text()
    assert len((tmp_path / "trial.csv").read_text().splitlines()) == 101
    with pytest.raises(UserError, match=r"found '.pdf', expected .md, .html, .tex"):
        result.report(tmp_path / "trial.pdf")


def test_a_value_missing_in_a_point_is_an_error_of_that_request(problem: Problem) -> None:
    points = [[np.nan, 1.0], [np.inf, 0.0], [2.0, 0.0], [2.0, 0.0]]
    result = geco_ray.survival(LogisticRegression(), **problem | {"counterfactuals": points}, families=["bootstrap"])
    assert result.requests["status"].to_pylist() == ["error", "error", "found", "found"]
