"""RNCE: the interval test against hand values, brute force over sampled networks and an independent solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp

from geco_ray.cfe.methods.base import METHODS, GenerationTask
from geco_ray.cfe.methods.rnce.exact import DECIDED_BY, robust_rows, smallest_logit
from geco_ray.cfe.methods.rnce.interval import NetworkBox, lower_bound, upper_bound
from geco_ray.cfe.milp.network import ReluNet
from geco_ray.cfe.mlp import Mlp


def random_net(rng: np.random.Generator, widths: tuple[int, ...]) -> ReluNet:
    pairs = list(itertools.pairwise(widths))
    return ReluNet(
        tuple(rng.normal(size=(out, into)) for into, out in pairs),
        tuple(0.3 * rng.normal(size=out) for _, out in pairs),
    )


def moved(net: ReluNet, rng: np.random.Generator, delta: float, beta: float) -> ReluNet:
    """A network at a random corner of the box around ``net``."""
    return ReluNet(
        tuple(w + delta * rng.choice([-1.0, 1.0], size=w.shape) for w in net.weights),
        tuple(b + beta * rng.choice([-1.0, 1.0], size=b.shape) for b in net.biases),
    )


def smallest_by_big_m(net: ReluNet, delta: float, beta: float, x: np.ndarray) -> float:
    """The two-hidden-layer minimum as one big-M program for SciPy's solver, every unit with its own binary."""
    (w1, w2, w3), (b1, b2, b3) = net.weights, net.biases
    n1, n2, big = len(b1), len(b2), 1e3
    z, slack = w1 @ x + b1, delta * np.abs(x).sum() + beta
    columns = n1 + 3 * n2  # a, z2, h, t
    rows, low, high = [], [], []

    def add(entries: dict[int, float], lower: float, upper: float) -> None:
        row = np.zeros(columns)
        for column, value in entries.items():
            row[column] = value
        rows.append(row), low.append(lower), high.append(upper)

    for j in range(n2):
        z2, h, t = n1 + j, n1 + n2 + j, n1 + 2 * n2 + j
        add({**{i: -(w2[j, i] - delta) for i in range(n1)}, z2: 1}, b2[j] - beta, np.inf)
        add({**{i: -(w2[j, i] + delta) for i in range(n1)}, z2: 1}, -np.inf, b2[j] + beta)
        add({h: 1, z2: -1}, 0, np.inf)
        add({h: 1, t: -big}, -np.inf, 0)
        add({h: 1, z2: -1, t: big}, -np.inf, big)
    cost = np.concatenate([np.zeros(n1 + n2), w3[0] - delta, np.zeros(n2)])
    lower = np.concatenate([np.maximum(z - slack, 0), np.full(n2, -big), np.zeros(2 * n2)])
    upper = np.concatenate([np.maximum(z + slack, 0), np.full(2 * n2, big), np.ones(n2)])
    result = milp(
        cost,
        integrality=np.arange(columns) >= n1 + 2 * n2,
        bounds=(lower, upper),
        constraints=LinearConstraint(np.array(rows), low, high),
    )
    assert result.success
    return float(result.fun + b3[0] - beta)


def test_one_unit_network_by_hand() -> None:
    # logit = 2 relu(x - 1) - 0.5; at x = -3 nothing fires, at x = 3 it is 3.5.
    net = ReluNet((np.array([[1.0]]), np.array([[2.0]])), (np.array([-1.0]), np.array([-0.5])))
    box = NetworkBox(net, delta=0.1, beta=0.05)
    # x = 3: unit >= 2 - 0.3 - 0.05 = 1.65, so (2 - 0.1) * 1.65 - 0.5 - 0.05 = 2.585.
    # x = -3: unit is 0 in every network, so -0.55.
    x = np.array([[3.0], [-3.0]])
    assert lower_bound(box, x) == pytest.approx([2.585, -0.55])
    assert upper_bound(box, x) == pytest.approx([2.585, -0.55])
    assert smallest_logit(box, x[0]) == pytest.approx(2.585)


def test_first_layer_moves_with_the_size_of_negative_inputs() -> None:
    """The published encoding multiplies (W +- delta) by x, which shrinks the box where x is negative."""
    net = ReluNet((np.array([[-1.0]]), np.array([[1.0]])), (np.array([0.0]), np.array([0.0])))
    box = NetworkBox(net, delta=0.1, beta=0.0)
    assert smallest_logit(box, np.array([-2.0])) == pytest.approx(0.9 * 1.8)


def test_zero_radius_is_the_logit() -> None:
    rng = np.random.default_rng(1)
    for widths in ((3, 5, 1), (3, 5, 4, 1), (3, 4, 4, 3, 1)):
        net, x = random_net(rng, widths), rng.normal(size=(20, 3))
        box = NetworkBox(net, 0.0, 0.0)
        assert lower_bound(box, x) == pytest.approx(net.logit(x))
        assert upper_bound(box, x) == pytest.approx(net.logit(x))


@pytest.mark.parametrize("widths", [(3, 5, 1), (3, 5, 4, 1), (2, 3, 3, 2, 1)])
def test_bounds_hold_the_exact_value_and_no_network_undercuts_it(widths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    for _ in range(12):
        net, x = random_net(rng, widths), rng.normal(size=(1, widths[0]))
        box = NetworkBox(net, 0.05, 0.02)
        exact = smallest_logit(box, x[0])
        assert lower_bound(box, x)[0] <= exact + 1e-6 <= upper_bound(box, x)[0] + 2e-6
        reached = min(moved(net, rng, 0.05, 0.02).logit(x)[0] for _ in range(300))
        assert reached >= exact - 1e-6


def test_three_hidden_layers_of_one_unit_against_all_corners() -> None:
    """With one unit per layer the logit is monotone in each parameter, so the minimum is at one of 2^8 corners."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        net, x = random_net(rng, (1, 1, 1, 1, 1)), rng.normal(size=1)
        corners = []
        for signs in itertools.product((-0.1, 0.1), repeat=8):
            weights = tuple(w + signs[i] for i, w in enumerate(net.weights))
            biases = tuple(b + signs[4 + i] for i, b in enumerate(net.biases))
            corners.append(ReluNet(weights, biases).logit(x[None])[0])
        assert smallest_logit(NetworkBox(net, 0.1, 0.1), x) == pytest.approx(min(corners), abs=1e-6)


def test_exact_value_agrees_with_a_big_m_program() -> None:
    rng = np.random.default_rng(3)
    for _ in range(10):
        net, x = random_net(rng, (4, 6, 6, 1)), rng.normal(size=4)
        expected = smallest_by_big_m(net, 0.05, 0.03, x)
        assert smallest_logit(NetworkBox(net, 0.05, 0.03), x) == pytest.approx(expected, abs=1e-5)


def test_rows_are_decided_as_the_exact_value_says_whatever_the_chunk() -> None:
    rng = np.random.default_rng(4)
    net, x = random_net(rng, (4, 8, 8, 1)), rng.normal(size=(60, 4))
    box = NetworkBox(net, 0.04, 0.04)
    test = robust_rows(box, x)
    assert test.passes.tolist() == [smallest_logit(box, row) > 0 for row in x]
    assert set(test.decided_by.tolist()) == {0, 1, 2}, "the example must exercise both bounds and the solver"
    again = robust_rows(box, x, chunk=7)
    assert (again.passes == test.passes).all()
    assert (again.decided_by == test.decided_by).all()
    assert len(DECIDED_BY) == 3


def make_task(model: Mlp, train_x: np.ndarray) -> GenerationTask:
    x = train_x.astype(np.float32)
    y = np.zeros(len(x), dtype=np.int64)
    return GenerationTask("toy", 2026, "paper", "paper", model, x, y, x, y, x, y)


def line_model() -> Mlp:
    """Logit = x_0 (as relu(x_0) - relu(-x_0)), for two features."""
    first = np.array([[1.0, 0.0], [-1.0, 0.0]], dtype=np.float32)
    return Mlp((first, np.array([[1.0, -1.0]], dtype=np.float32)), (np.zeros(2, np.float32), np.zeros(1, np.float32)))


def test_method_returns_the_nearest_robust_row_not_the_nearest_favourable() -> None:
    # Logit 0.01 is favourable, but 0.01 - 0.005 * |x|_1 ... < 0; the row at 1.0 is robust.
    rows = np.array([[0.01, 0.0], [1.0, 0.0], [1.5, 0.0], [-1.0, 0.0]])
    entry = METHODS.get("rnce")
    prepared = entry.target(make_task(line_model(), rows), entry.parse_options({}))
    factual = np.array([[-0.5, 0.0]])
    (answer,) = prepared.generate(factual, [0])
    assert answer.status == "found"
    assert answer.point is not None
    assert answer.point.tolist() == [1.0, 0.0]
    assert answer.columns == {"training_row": 1}
    assert prepared.set_up["candidates"] == 2
    assert factual.tolist() == [[-0.5, 0.0]]


def test_no_robust_row_is_not_found() -> None:
    entry = METHODS.get("rnce")
    rows = np.array([[0.01, 0.0], [-1.0, 0.0]])
    prepared = entry.target(make_task(line_model(), rows), entry.parse_options({}))
    (answer,) = prepared.generate(np.array([[-0.5, 0.0]]), [3])
    assert (answer.point, answer.status) == (None, "not_found")
    assert answer.reason
