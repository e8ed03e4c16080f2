"""ROAR-LIME against lime and scikit-learn, RBR against autograd and a plain solver, RobX's streams."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from geco_ray.cfe.methods.base import METHODS, GenerationTask
from geco_ray.cfe.methods.rbr.losses import STEP, Loss, Optimistic, Pessimistic, Setting, minimise
from geco_ray.cfe.methods.rbr.search import largest_distance, prepare_rbr, project_l1
from geco_ray.cfe.methods.roar_lime.surrogate import Scaler, explain, fit_as_lime, fit_logistic, kernel_weights
from geco_ray.cfe.rowwise import RowNet

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


def test_the_packages_regression_stops_near_the_optimum_and_not_at_it() -> None:
    rng = np.random.default_rng(0)
    x, weights = torch.tensor(rng.standard_normal((2000, 6))), torch.tensor(rng.random(2000))
    labels = x @ torch.tensor(rng.standard_normal(6)) > 0.4
    exact, lime = fit_logistic(x, labels, weights), fit_as_lime(x, labels, weights)
    assert 0 < float((exact - lime).abs().max()) < 0.01 * float(exact.abs().max())


def test_the_option_regression_changes_the_answer(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    entry, points = METHODS.get("roar_lime"), {}
    for regression in ("exact", "lime"):
        options = entry.parse_options({"trade_off": 0.05, "samples": SAMPLES, "regression": regression})
        points[regression] = entry.target(toy_task, options).generate(toy_factuals[:3], [0, 1, 2])
    gaps = [np.abs(a.point - b.point).max() for a, b in zip(points["exact"], points["lime"], strict=True)]
    assert 0 < max(gaps) < 0.05


def test_settings_of_a_task_share_the_fit_and_answer_as_each_alone(
    toy_task: GenerationTask, toy_factuals: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    from geco_ray.cfe.methods.roar_lime import search

    fitted: list[bytes] = []

    def counted(x0: np.ndarray, *rest: object) -> object:
        fitted.append(x0.tobytes())
        return explain(x0, *rest)

    monkeypatch.setattr(search, "explain", counted)
    entry, rows = METHODS.get("roar_lime"), toy_factuals[:3]

    def points(task: GenerationTask, trade_off: float) -> list[list[float]]:
        options = entry.parse_options({"trade_off": trade_off, "samples": SAMPLES})
        return [answer.point.tolist() for answer in entry.target(task, options).generate(rows, [0, 1, 2])]

    together = [points(toy_task, value) for value in (0.05, 0.5)]
    assert len(fitted) == 3
    assert together == [points(replace(toy_task), value) for value in (0.05, 0.5)]


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


def test_robxs_two_settings_share_the_calibration(toy_task: GenerationTask, monkeypatch: pytest.MonkeyPatch) -> None:
    from geco_ray.cfe.methods.robx.stability import Stability

    drawn: list[int] = []
    draw = Stability.draw
    monkeypatch.setattr(
        Stability, "draw", lambda self, stream, points: drawn.append(points) or draw(self, stream, points)
    )

    def thresholds(*tasks: GenerationTask) -> list[object]:
        entries = [METHODS.get(name) for name in ("robx_balanced", "robx_robust")]
        return [entry.target(task, entry.options()).set_up["tau"] for entry, task in zip(entries, tasks, strict=True)]

    shared = thresholds(toy_task, toy_task)
    batches = len(drawn)
    assert shared == thresholds(replace(toy_task), replace(toy_task))
    assert shared[0] < shared[1]
    assert len(drawn) == 3 * batches
