"""ROAR-LIME against lime and scikit-learn, RBR against autograd and a plain solver, and the tuning rule."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import yaml

from geco_ray.cfe import tuning
from geco_ray.cfe.methods.base import METHODS, GenerationTask
from geco_ray.cfe.methods.rbr.losses import STEP, Loss, Optimistic, Pessimistic, Setting, minimise
from geco_ray.cfe.methods.rbr.search import largest_distance, prepare_rbr, project_l1
from geco_ray.cfe.methods.roar_lime.surrogate import Scaler, explain, fit_logistic, kernel_weights
from geco_ray.cfe.rowwise import RowNet
from geco_ray.cfe.tuning import Candidate, select
from geco_ray.errors import UserError

SAMPLES = 1000


def surrogate(task: GenerationTask, x0: np.ndarray, z: np.ndarray, around_factual: bool = False) -> object:
    scaler = Scaler.of(task.train_x)
    net = RowNet(task.model)
    return explain(x0, z, scaler, x0 if around_factual else scaler.mean, net.favourable)


def test_logistic_regression_equals_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x = rng.standard_normal((5000, 6))
    labels = x @ rng.standard_normal(6) + rng.standard_normal(5000) > 0.4
    weights = rng.random(5000)
    reference = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000).fit(x, labels, sample_weight=weights)
    got = fit_logistic(torch.tensor(x), torch.tensor(labels), torch.tensor(weights)).numpy()
    assert got[:-1] == pytest.approx(reference.coef_[0], abs=1e-5)
    assert got[-1] == pytest.approx(reference.intercept_[0], abs=1e-5)


def test_separable_labels_converge_by_the_penalty() -> None:
    x = torch.linspace(-1, 1, 4001, dtype=torch.float64)[:, None]
    coefficients = fit_logistic(x, x[:, 0] > 0.5, torch.ones(4001, dtype=torch.float64))
    z = (x @ coefficients[:1] + coefficients[1]).sigmoid()
    gradient = ((z - (x[:, 0] > 0.5).double())[:, None] * x).sum() + coefficients[0]
    assert abs(float(gradient)) < 1e-6
    assert torch.isfinite(coefficients).all()


def test_surrogate_equals_the_lime_package(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    from lime.lime_tabular import LimeTabularExplainer
    from sklearn.linear_model import LogisticRegression

    class Classifier(LogisticRegression):
        """lime calls ``predict`` and ``score`` of a regressor on hard labels: logistic regression will do."""

        def fit(self, x: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Classifier:
            super().fit(x, y, sample_weight)
            self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]
            return self

        def predict(self, x: np.ndarray) -> np.ndarray:
            return x @ self.coef_ + self.intercept_

        def score(self, x: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
            return 0.0

    def hard(rows: np.ndarray) -> np.ndarray:
        favourable = toy_task.model.favourable(rows)
        return np.stack([~favourable, favourable], axis=1).astype(float)

    explainer = LimeTabularExplainer(
        toy_task.train_x, discretize_continuous=False, feature_selection="none", random_state=2026
    )
    explanation = explainer.explain_instance(
        toy_factuals[0],
        hard,
        labels=(1,),
        num_samples=SAMPLES,
        model_regressor=Classifier(C=1.0, max_iter=1000, tol=1e-10),
    )
    z = np.random.RandomState(2026).normal(0, 1, SAMPLES * 4).reshape(SAMPLES, 4)
    scaler, ours = Scaler.of(toy_task.train_x), surrogate(toy_task, toy_factuals[0], z)
    coefficients = np.array([weight for _, weight in sorted(explanation.local_exp[1])])
    assert ours.weights * scaler.scale == pytest.approx(coefficients, abs=1.01e-4)
    intercept = explanation.intercept[1] - (coefficients / scaler.scale) @ scaler.mean
    assert ours.intercept == pytest.approx(intercept, abs=5e-4)


def test_kernel_weights_by_hand() -> None:
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], dtype=torch.float64)
    # Distance 5, width 0.75 sqrt(2): sqrt(exp(-25 / 1.125)).
    assert kernel_weights(x).tolist() == pytest.approx([1.0, math.exp(-25 / 1.125 / 2)])


def test_the_protocols_centre_the_sample_differently(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    z = np.random.default_rng(0).standard_normal((SAMPLES, 4))
    far = toy_factuals[int(np.argmin(toy_task.model.logit(toy_factuals)))]
    mean, factual = surrogate(toy_task, far, z), surrogate(toy_task, far, z, around_factual=True)
    assert factual.favourable_share < mean.favourable_share
    entry = METHODS.get("roar_lime")
    options = entry.parse_options({"trade_off": 0.1, "samples": SAMPLES, "max_steps": 5})
    shares = {}
    for protocol in ("paper", "corrected"):
        prepared = entry.target(replace(toy_task, protocol=protocol), options)
        shares[protocol] = prepared.generate(far[None], [0])[0].columns["favourable_share"]
    assert shares["corrected"] < shares["paper"]


def test_one_class_in_the_sample_is_an_error(hopeless_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    entry = METHODS.get("roar_lime")
    prepared = entry.target(hopeless_task, entry.parse_options({"trade_off": 0.05, "samples": 100}))
    answer = prepared.generate(toy_factuals[:1], [0])[0]
    assert (answer.status, answer.reason) == ("error", "LIME's sample has one class")


def test_roar_descent_follows_autograd(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    entry = METHODS.get("roar_lime")
    prepared = entry.target(toy_task, entry.parse_options({"trade_off": 0.05, "samples": SAMPLES}))
    for i, answer in enumerate(prepared.generate(toy_factuals[:3], [0, 1, 2])):
        z = toy_task.stream("roar_lime", i).standard_normal((SAMPLES, 4))
        linear = surrogate(toy_task, toy_factuals[i], z)
        w, c = torch.tensor(linear.weights, dtype=torch.float32), linear.intercept
        x0 = torch.tensor(toy_factuals[i], dtype=torch.float32)
        x = x0.clone().requires_grad_()
        optimiser, before, steps = torch.optim.Adam([x], lr=0.001), math.inf, 0
        while steps < 20_000:
            steps += 1
            logit = ((w - 0.1 * x.detach().sign()) * x).sum() + c - 0.1
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logit, torch.ones(()))
            loss = loss + 0.05 * (x - x0).abs().sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if abs(loss.item() - before) <= 1e-4:
                break
            before = loss.item()
        assert abs(answer.columns["steps"] - steps) <= 2, "float rounding may move the end by a step"
        assert answer.point == pytest.approx(x.detach().numpy(), abs=5e-3)


SETTING = Setting(features=5, sigma=1.0, radius=0.5)


def check_gradient(loss: Loss, first: float, second: float, c: float, exact_first: bool = True) -> None:
    point = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (first, second, c)]
    wanted = torch.autograd.grad(loss.value(*point), point)
    got = [*loss.gradient(*point), loss.slope(*point)]
    for index, (ours, theirs) in enumerate(zip(got, wanted, strict=True)):
        if index or exact_first:
            assert float(ours.detach()) == pytest.approx(float(theirs), rel=1e-9)


@pytest.mark.parametrize(("first", "second", "c"), [(0.1, 0.2, 3.0), (0.0, 0.05, 0.7), (0.15, 0.01, 8.0)])
def test_inner_gradients_equal_autograd(first: float, second: float, c: float) -> None:
    check_gradient(Optimistic(SETTING), first, second, c)
    check_gradient(Pessimistic(SETTING, exact=True), first, second, c)
    check_gradient(Pessimistic(SETTING, exact=False), first, second, c, exact_first=False)


def test_the_coded_sign_differs_in_its_last_term_only() -> None:
    u = [torch.tensor(v, dtype=torch.float64) for v in (0.1, 0.05, 2.0)]
    exact, coded = (Pessimistic(SETTING, exact=e).gradient(*u)[0] for e in (True, False))
    g = math.sqrt((1e-6 + 0.25 - 5 * 0.01 - 0.0025) / 4)
    assert float(exact - coded) == pytest.approx(2 * 5 * 0.1 / (g * (g + 1)))


def plain_descent(loss: Loss, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """One request's inner problem, as the protocol words it."""
    v = torch.zeros((2, len(c)))
    best, stale = math.inf, 0
    for _ in range(1000):
        total = float(loss.value(v[0], v[1], c).sum())
        v = (v - STEP * torch.stack(loss.gradient(v[0], v[1], c))).clamp(min=0)
        size = v.norm(dim=0)
        v = torch.where(size > loss.ball, v * (loss.ball / size), v)
        stale, best = (0, total) if best - total > 1e-10 else (stale + 1, best)
        if stale == 10:
            break
    return v[0], v[1]


@pytest.mark.parametrize("loss", [Optimistic(SETTING), Pessimistic(SETTING, exact=True)])
def test_batched_inner_descents_end_where_single_ones_do(loss: Loss) -> None:
    c = torch.rand(3, 32, generator=torch.Generator().manual_seed(0)) * torch.tensor([[1.0], [4.0], [9.0]]) + 0.5
    used = torch.ones(3, 32, dtype=torch.bool)
    used[1, 20:] = False
    first, second = minimise(loss, c, used)
    for i in range(3):
        one, two = plain_descent(loss, c[i][used[i]])
        assert first[i][used[i]].numpy() == pytest.approx(one.numpy(), abs=1e-4)
        assert second[i][used[i]].numpy() == pytest.approx(two.numpy(), abs=1e-4)


def test_project_l1() -> None:
    x = torch.tensor([[3.0, 1.0, 0.0], [0.1, -0.2, 0.0], [-2.0, 2.0, 1.0]])
    got = project_l1(x, torch.tensor([2.0, 2.0, 1.0]))
    assert got.numpy() == pytest.approx(np.array([[2.0, 0.0, 0.0], [0.1, -0.2, 0.0], [-0.5, 0.5, 0.0]]), abs=1e-6)


def test_boundary_point_is_the_closest_first_crossing(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    entry = METHODS.get("rbr")
    prepared = prepare_rbr(toy_task, entry.parse_options({}))
    rows = toy_task.train_x[toy_task.model.favourable(toy_task.train_x)]
    for factual in toy_factuals[:10].astype(np.float32):
        best = math.inf
        for row in rows:
            points = factual + np.linspace(0, 1, 100, dtype=np.float32)[:, None] * (row - factual)
            first = points[np.argmax(toy_task.model.favourable(points))]
            best = min(best, float(np.abs(first - factual).sum()))
        point = prepared._boundary(torch.tensor(factual)).numpy()
        assert toy_task.model.favourable(point[None])[0]
        assert float(np.abs(point - factual).sum()) == pytest.approx(best, rel=1e-5)


def test_rbr_stays_near_its_boundary_point(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    entry = METHODS.get("rbr")
    answers = entry.target(toy_task, entry.parse_options({})).generate(toy_factuals[:8], range(8))
    for factual, answer in zip(toy_factuals, answers, strict=False):
        moved = np.abs(answer.point - factual).sum()
        assert moved <= answer.columns["boundary_distance"] + 0.2 + 1e-4


def test_rbr_protocols_differ(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    entry = METHODS.get("rbr")
    points = [
        entry.target(replace(toy_task, protocol=p), entry.parse_options({})).generate(toy_factuals[:6], range(6))
        for p in ("paper", "corrected")
    ]
    assert any(not np.array_equal(a.point, b.point) for a, b in zip(*points, strict=True))


def test_largest_distance_over_chunks() -> None:
    rows = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0], [4.0, 0.0]])
    assert largest_distance(rows, chunk=1) == pytest.approx(5.0)


def test_selection_is_lexicographic_and_the_first_of_equals_wins() -> None:
    a = Candidate({"trade_off": 1.0}, 0.9, 0.1)
    b = Candidate({"trade_off": 2.0}, 1.0, 5.0)
    c = Candidate({"trade_off": 3.0}, 1.0, 2.0)
    d = Candidate({"trade_off": 4.0}, 1.0, 2.0)
    none = Candidate({"trade_off": 5.0}, 0.0, None)
    assert select([none, a, b, c, d]) is c
    assert select([none]) is none


def test_the_record_holds_what_the_paper_protocol_selects() -> None:
    for dataset in ("breast_cancer", "diabetes", "wine_quality", "heloc"):
        assert tuning.tuned("wachter", "paper", dataset) == {"trade_off": 1.0, "learning_rate": 0.01}
        assert tuning.tuned("roar_lime", "paper", dataset) in tuning.ROAR_LIME_GRID
    assert tuning.tuned("wachter", "paper", "unknown") == {"trade_off": 1.0, "learning_rate": 0.01}
    assert len(tuning.ROAR_LIME_GRID) == 25
    assert [point["trade_off"] for point in tuning.ROAR_LIME_GRID][:5] == [0.0005, 0.001, 0.005, 0.01, 0.06]
    assert tuning.ROAR_LIME_GRID[-1] == {"trade_off": 1.06}


def test_a_data_set_without_a_record_gets_a_value_only_where_all_recorded_agree() -> None:
    wachter, roar = METHODS.get("wachter").parse_options, METHODS.get("roar_lime").parse_options
    agreed = {"trade_off": 1.0, "learning_rate": 0.01}
    assert tuning.resolve_tuned("wachter", wachter({}), "paper", "loans") == agreed
    assert tuning.resolve_tuned("wachter", wachter({"trade_off": 3}), "paper", "loans") == {**agreed, "trade_off": 3.0}
    assert tuning.resolve_tuned("roar_lime", roar({"trade_off": 0.5}), "paper", "loans") == {"trade_off": 0.5}
    assert tuning.resolve_tuned("roar_lime", roar({}), "paper", "diabetes") == {"trade_off": 0.005}
    for method, options, protocol, missing in (
        ("roar_lime", roar({}), "paper", "trade_off"),
        ("roar_lime", roar({}), "corrected", "trade_off"),
        ("wachter", wachter({}), "corrected", "trade_off and learning_rate"),
        ("wachter", wachter({"trade_off": 0.25}), "corrected", "learning_rate"),
    ):
        with pytest.raises(UserError, match=f"no tuned {missing} for the data set 'loans'") as caught:
            tuning.resolve_tuned(method, options, protocol, "loans")
        text = str(caught.value)
        assert METHODS.get(method).title in text
        remedy = text[text.index("cfe.methods=[{") + len("cfe.methods=[") : text.index("}]") + 1]
        choice = yaml.safe_load(remedy)
        assert choice.pop("name") == method
        example = METHODS.get(method).parse_options(choice)
        assert tuning.resolve_tuned(method, example, protocol, "loans") == choice  # the remedy is one
    assert "trade_off: 0.25" in text


def test_an_untuned_data_set_fails_when_the_method_is_prepared(toy_task: GenerationTask) -> None:
    entry = METHODS.get("roar_lime")
    with pytest.raises(UserError, match="'toy'"):
        entry.target(toy_task, entry.parse_options({}))
    assert entry.target(toy_task, entry.parse_options({"trade_off": 0.5})).set_up == {"trade_off": 0.5}


def test_the_record_is_what_its_own_scores_select() -> None:
    for method, protocols in tuning._record().items():
        for datasets in protocols.values():
            for entry in datasets.values():
                candidates = [Candidate(**candidate) for candidate in entry["candidates"]]
                assert [c.options for c in candidates] == list(tuning.GRIDS[method])
                assert select(candidates).options == entry["selected"]


def test_tune_scores_every_point(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    grid = [{"trade_off": 100.0, "learning_rate": 0.01}, {"trade_off": 0.1, "learning_rate": 0.05}]
    entry = METHODS.get("wachter")
    assert entry.parse_options({**grid[0]})
    outcome = tuning.tune("wachter", toy_task, toy_factuals[:4], [{**point, "max_steps": 300} for point in grid])
    assert [candidate.valid_share for candidate in outcome.candidates] == [0.0, 1.0]
    assert outcome.candidates[0].distance is None
    assert outcome.selected["trade_off"] == 0.1
    assert outcome.factuals == 4


def test_robx_draws_from_published_seeds_only_under_paper_seeding(toy_task: GenerationTask) -> None:
    from geco_ray.cfe.methods.robx.search import Robx

    def first_draws(task: GenerationTask) -> list[float]:
        method = METHODS.get("robx_balanced")
        robx = method.target(task, method.options(samples=20))
        assert isinstance(robx, Robx)
        return [stream.take("x", lambda g: float(g.random())) for stream in robx._streams([0, 1])]

    published = float(np.random.default_rng(toy_task.base_seed).random())
    assert first_draws(toy_task) == [published, published]
    one, two = first_draws(replace(toy_task, seeding="independent"))
    assert one == two != published  # the switch of the shared stream is another one
