"""The closest point with a margin: bounds, walk, program and proof against dense grids, corners and each other."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp

from geco_ray.cfe.milp.bounds import Neighbourhood, nearest_possible, network_bounds
from geco_ray.cfe.milp.cuts import strengthen
from geco_ray.cfe.milp.network import ReluNet
from geco_ray.cfe.milp.program import ball_program
from geco_ray.cfe.milp.proof import TOLERANCE, prove
from geco_ray.cfe.milp.reach import highest_logit
from geco_ray.cfe.milp.solver import solve_mip
from geco_ray.cfe.milp.tighten import tighten
from geco_ray.cfe.milp.walk import Walk

DEPTHS = [(2, 6, 1), (2, 6, 5, 1), (3, 5, 5, 4, 1)]


def random_net(rng: np.random.Generator, widths: tuple[int, ...]) -> ReluNet:
    pairs = list(itertools.pairwise(widths))
    return ReluNet(
        tuple(rng.normal(size=(out, into)) for into, out in pairs),
        tuple(0.3 * rng.normal(size=out) for _, out in pairs),
    )


def line_net() -> ReluNet:
    """Logit = x_0 + 0.5 x_1, written with four units."""
    first = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    return ReluNet((first, np.array([[1.0, -1.0, 0.5, -0.5]])), (np.zeros(4), np.zeros(1)))


def ball_points(rng: np.random.Generator, around: Neighbourhood, radius: float, count: int) -> np.ndarray:
    """Points of the box within ``radius`` of the origin, many of them on few coordinates."""
    d = len(around.origin)
    shares = rng.dirichlet(np.full(d, 0.4), size=count) * rng.random((count, 1)) * radius
    moves = shares * rng.choice([-1.0, 1.0], size=shares.shape)
    return around.origin + np.clip(moves, -around.down, around.up)


def closest_on_grid(net: ReluNet, around: Neighbourhood, logit: float, per_axis: int = 401) -> float:
    """Smallest distance over a dense grid of the box, two features."""
    low, high = around.origin - around.down, around.origin + around.up
    axes = [np.linspace(low[j], high[j], per_axis) for j in range(2)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    kept = grid[net.logit(grid) >= logit]
    return float(np.abs(kept - around.factual).sum(axis=1).min()) if len(kept) else np.inf


def test_filling_the_radius_by_hand() -> None:
    around = Neighbourhood.of(np.array([0.0, 0.0]), np.array([-1.0, -1.0]), np.array([1.0, 3.0]))
    # 3 per unit down the first (room 1), then 2 per unit up the second: 3 * 1 + 2 * 1.5.
    assert around.most(np.array([[-3.0, 2.0]]), 2.5) == pytest.approx([6.0])
    assert around.most(np.array([[-3.0, 2.0]]), 100.0) == pytest.approx([9.0])
    assert around.most(np.array([[-3.0, 2.0]]), 0.0) == pytest.approx([0.0])


def test_a_factual_outside_the_box_starts_at_its_edge() -> None:
    around = Neighbourhood.of(np.array([-3.0, 0.0]), np.array([-1.0, -1.0]), np.array([1.0, 1.0]))
    assert around.origin.tolist() == [-1.0, 0.0]
    assert around.offset == 2.0
    point = np.array([0.5, -0.5])
    assert around.distance(point) == around.offset + np.abs(point - around.origin).sum()


@pytest.mark.parametrize("widths", DEPTHS)
def test_bounds_hold_at_every_point_of_the_ball(widths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    for radius in (0.1, 0.7, 2.0):
        net, d = random_net(rng, widths), widths[0]
        around = Neighbourhood.of(rng.normal(size=d), np.full(d, -1.5), np.full(d, 1.5))
        layers = network_bounds(net, around, radius)
        points = ball_points(rng, around, radius, 300)
        for x in points:
            z = np.append(net.preactivations(x), net.logit(x[None]))
            low, high = (np.concatenate([getattr(layer, side) for layer in layers]) for side in ("low", "high"))
            assert (low <= z + 1e-9).all()
            assert (z <= high + 1e-9).all()
            moves = x - around.origin
            weights = np.concatenate([[0.0], np.maximum(moves, 0), np.maximum(-moves, 0)]) / radius
            weights[0] = 1 - weights.sum()
            parts = np.split(z, np.cumsum([len(layer.low) for layer in layers])[:-1])
            for layer, part in zip(layers, parts, strict=True):
                assert (layer.corners @ weights >= part - 1e-9).all(), "the interpolation must lie above"


@pytest.mark.parametrize("widths", DEPTHS)
def test_program_bounds_the_same_minimum_as_the_network(widths: tuple[int, ...]) -> None:
    """The largest logit in a ball: the program's optimum is reached by the network and beaten by no sample."""
    rng = np.random.default_rng(2)
    for radius in (0.5, 2.0):
        net, d = random_net(rng, widths), widths[0]
        around = Neighbourhood.of(rng.normal(size=d), np.full(d, -1.5), np.full(d, 1.5))
        result = solve_mip(ball_program(net, around, radius, logit=None).program, gap=1e-8)
        assert result.values is not None
        point = around.origin + result.values[:d] - result.values[d : 2 * d]
        assert net.logit(point[None])[0] == pytest.approx(-result.objective, abs=1e-5)
        assert net.logit(ball_points(rng, around, radius, 2000)).max() <= -result.objective + 1e-5


def test_walk_on_a_plane_takes_the_cheapest_coordinate() -> None:
    rows = np.array([[2.0, 2.0], [-1.0, 0.0]])
    around = Neighbourhood.of(np.array([-0.5, 0.0]), np.full(2, -1.0), np.full(2, 2.0))
    found = Walk(line_net(), around, rows).find(0.3)
    assert found is not None
    assert found.point == pytest.approx([0.3, 0.0])
    assert found.distance == pytest.approx(0.8)


def test_walk_turns_to_the_dearer_coordinate_at_the_edge_of_the_box() -> None:
    rows = np.array([[0.1, 2.0], [-1.0, 0.0]])
    around = Neighbourhood.of(np.array([-0.5, 0.0]), np.array([-1.0, -1.0]), np.array([0.1, 2.0]))
    found = Walk(line_net(), around, rows).find(0.3)
    assert found is not None
    assert found.point == pytest.approx([0.1, 0.4])


@pytest.mark.parametrize("widths", [(2, 6, 1), (2, 8, 8, 1)])
def test_proven_distance_is_that_of_a_dense_grid(widths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    proven = 0
    for _ in range(12):
        net = random_net(rng, widths)
        rows = rng.uniform(-2, 2, size=(60, 2))
        around = Neighbourhood.of(rng.uniform(-2.5, 2.5, size=2), rows.min(axis=0), rows.max(axis=0))
        logit = float(np.quantile(net.logit(rows), 0.8))
        if net.logit(around.origin[None])[0] >= logit:
            continue
        walk = Walk(net, around, rows)
        found = walk.find(logit)
        assert found is not None
        assert net.logit(found.point[None])[0] >= logit - 1e-7
        result = prove(net, around, logit, found.point, 500)
        assert result.status == "optimal"
        expected = closest_on_grid(net, around, logit)
        step = 2 * 4 / 400
        assert result.lower_bound <= expected + 1e-9
        assert result.distance <= expected + 1e-9
        assert result.distance >= expected - step * 3, "closer than the network allows"
        proven += 1
    assert proven >= 6


def test_proof_replaces_a_bad_incumbent() -> None:
    rng = np.random.default_rng(4)
    net = random_net(rng, (2, 8, 8, 1))
    rows = rng.uniform(-2, 2, size=(60, 2))
    logits = net.logit(rows)
    factual, logit = rows[logits.argmin()], float(np.quantile(logits, 0.7))
    around = Neighbourhood.of(factual, rows.min(axis=0), rows.max(axis=0))
    good = Walk(net, around, rows).find(logit)
    assert good is not None
    favourable = rows[logits >= logit]
    bad = favourable[np.abs(favourable - factual).sum(axis=1).argmax()]
    result = prove(net, around, logit, bad, 500)
    assert result.improved
    assert result.status == "optimal"
    assert result.distance == pytest.approx(good.distance, rel=2 * TOLERANCE)
    assert net.logit(result.point[None])[0] >= logit - 1e-7
    kept = prove(net, around, logit, result.point, 500)
    assert not kept.improved
    assert kept.point is result.point


def test_proofs_end_wherever_outside_the_box_the_factual_is() -> None:
    """The distance to the box and the radius within it must add up, whatever their rounding."""
    rng = np.random.default_rng(11)
    for place in rng.uniform(-5.0, -1.0, size=60):
        around = Neighbourhood.of(np.array([place, 0.1]), np.full(2, -1.0), np.full(2, 2.0))
        result = prove(line_net(), around, 0.3, np.array([0.25, 0.1]), None)
        assert result.status == "optimal"
        assert result.distance == pytest.approx(0.25 - place)


def hard_problem() -> tuple[ReluNet, Neighbourhood, float, np.ndarray]:
    rng = np.random.default_rng(6)
    net = random_net(rng, (8, 20, 20, 1))
    rows = rng.uniform(-2, 2, size=(200, 8))
    logits = net.logit(rows)
    around = Neighbourhood.of(rows[logits.argmin()], rows.min(axis=0), rows.max(axis=0))
    logit = float(np.quantile(logits, 0.9))
    found = Walk(net, around, rows).find(logit)
    assert found is not None
    return net, around, logit, found.point


def test_a_spent_budget_keeps_a_valid_bound_and_can_be_taken_up_again() -> None:
    net, around, logit, point = hard_problem()
    short = prove(net, around, logit, point, 3)
    assert short.status == "nodes"
    assert 0 < short.lower_bound < short.distance
    assert short.gap == pytest.approx(1 - short.lower_bound / short.distance)
    again = prove(net, around, logit, short.point, 60, lower_bound=short.lower_bound)
    assert short.lower_bound <= again.lower_bound <= again.distance <= short.distance
    rng = np.random.default_rng(0)
    inside = ball_points(rng, around, again.lower_bound - around.offset, 5000)
    assert net.logit(inside).max() < logit


def test_proofs_are_the_same_on_every_run() -> None:
    net, around, logit, point = hard_problem()
    one, two = (prove(net, around, logit, point, 20) for _ in range(2))
    assert (one.distance, one.lower_bound, one.nodes, one.status) == (
        two.distance,
        two.lower_bound,
        two.nodes,
        two.status,
    )


def test_tightened_bounds_keep_every_point_of_interest() -> None:
    net, around, logit, point = hard_problem()
    radius = around.distance(point) * 1.3 - around.offset
    tight = tighten(net, around, radius, logit, 0.0)
    assert tight.known is not None
    rng = np.random.default_rng(2)
    near = np.array([around.clip(x) for x in point + 0.3 * rng.normal(size=(4000, len(point)))])
    inside = np.abs(near - around.origin).sum(axis=1) <= radius
    kept = near[inside & (net.logit(near) >= logit)]
    assert len(kept) > 20, "the example must have points to keep"
    low, high = (np.concatenate([layer[side] for layer in tight.known]) for side in (0, 1))
    z = np.array([net.preactivations(x) for x in kept])
    assert (low <= z + 1e-6).all()
    assert (z <= high + 1e-6).all()
    assert tight.beyond <= np.abs(kept - around.origin).sum(axis=1).min()
    loose = network_bounds(net, around, radius)[:-1]
    widths = [
        sum(float((high - low).sum()) for low, high in layers)
        for layers in (tight.known, [(layer.low, layer.high) for layer in loose])
    ]
    assert widths[0] < 0.95 * widths[1], "it must pay"


@pytest.mark.parametrize("widths", [(6, 12, 1), (6, 12, 12, 1)])
def test_program_and_cuts_hold_at_every_point_of_the_ball(widths: tuple[int, ...]) -> None:
    """Each row is satisfied by the network's own activations and signs, and the cuts lift the relaxed bound."""
    rng = np.random.default_rng(10)
    net, d = random_net(rng, widths), widths[0]
    around = Neighbourhood.of(rng.normal(size=d), np.full(d, -0.8), np.full(d, 0.8))
    radius, points = 2.5, ball_points(rng, around, 2.5, 400)
    logit = float(np.quantile(net.logit(points), 0.95))
    plain = ball_program(net, around, radius, logit=logit)
    ball = strengthen(plain, radius, 2 * d)
    assert len(ball.program.matrix) > len(plain.program.matrix)
    for x in points[net.logit(points) >= logit]:
        v = np.zeros(len(ball.program.cost))
        v[:d], v[d : 2 * d] = np.maximum(x - around.origin, 0), np.maximum(around.origin - x, 0)
        z, starts = net.preactivations(x), np.concatenate([[0], net.splits])
        for (depth, unit), (column, binary) in zip(ball.places, ball.columns, strict=True):
            v[column] = max(z[starts[depth] + unit], 0.0)
            if binary >= 0:
                v[binary] = z[starts[depth] + unit] > 0
        value = ball.program.matrix @ v
        assert (ball.program.row_lower - 1e-8 <= value).all()
        assert (value <= ball.program.row_upper + 1e-8).all()
    relaxed = [solve_mip(replace(part.program, integer=None)).objective for part in (plain, ball)]
    assert relaxed[1] >= relaxed[0] - 1e-9


def test_tightening_sees_that_nothing_is_there() -> None:
    net, around, logit, point = hard_problem()
    short = nearest_possible(net, around, logit, around.distance(point)) - around.offset
    assert tighten(net, around, 0.99 * short, logit, 0.0).known is None


def closest_by_big_m(net: ReluNet, around: Neighbourhood, logit: float) -> float:
    """The closest distance as one big-M program over all units for SciPy's solver."""
    d, widths, big = len(around.origin), [len(b) for b in net.biases[:-1]], 60.0
    units = sum(widths)
    columns = 2 * d + 2 * units  # up, down, activations, binaries
    rows, low, high = [], [], []
    before = np.zeros((d, columns))
    before[:, :d], before[:, d : 2 * d] = np.eye(d), -np.eye(d)
    offset, at = around.origin, 2 * d
    for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True):
        z, z0 = weight @ before, weight @ offset + bias
        before, offset = np.zeros((len(bias), columns)), np.zeros(len(bias))
        for unit in range(len(bias)):
            h, t = np.zeros(columns), np.zeros(columns)
            h[at + unit], t[at + unit + units] = 1.0, 1.0
            before[unit] = h
            for row, least, most in (
                (h - z[unit], z0[unit], np.inf),
                (h - z[unit] + big * t, -np.inf, z0[unit] + big),
                (h - big * t, -np.inf, 0.0),
            ):
                rows.append(row), low.append(least), high.append(most)
        at += len(bias)
    rows.append(net.weights[-1][0] @ before), low.append(logit - net.biases[-1][0]), high.append(np.inf)
    room = np.concatenate([around.up, around.down, np.full(units, big), np.ones(units)])
    result = milp(
        np.concatenate([np.ones(2 * d), np.zeros(2 * units)]),
        integrality=np.arange(columns) >= columns - units,
        bounds=(0, room),
        constraints=LinearConstraint(np.array(rows), low, high),
    )
    assert result.success
    return float(result.fun) + around.offset


def test_proven_distances_agree_with_a_big_m_program() -> None:
    rng = np.random.default_rng(8)
    for _ in range(5):
        net = random_net(rng, (4, 6, 6, 1))
        rows = rng.uniform(-2, 2, size=(80, 4))
        logits = net.logit(rows)
        logit = float(np.quantile(logits, 0.85))
        around = Neighbourhood.of(1.1 * rows[logits.argmin()], rows.min(axis=0), rows.max(axis=0))
        far = rows[logits.argmax()]
        result = prove(net, around, logit, far, None)
        assert result.status == "optimal"
        assert result.distance == pytest.approx(closest_by_big_m(net, around, logit), rel=3e-4)


def test_nearest_possible_excludes_only_what_is_impossible() -> None:
    net, around, logit, point = hard_problem()
    bound = nearest_possible(net, around, logit, around.distance(point))
    assert 0 < bound <= around.distance(point)
    inside = ball_points(np.random.default_rng(1), around, bound - around.offset, 5000)
    assert net.logit(inside).max() < logit


def test_highest_logit_by_hand() -> None:
    rows = np.array([[-1.0, -1.0], [0.5, 0.0]])
    reach = highest_logit(line_net(), np.full(2, -1.0), np.array([2.0, 3.0]), rows, 50)
    assert reach.point == pytest.approx([2.0, 3.0])
    assert reach.reached == pytest.approx(3.5)
    assert reach.ceiling == pytest.approx(3.5)


def test_no_start_no_candidate() -> None:
    rows = np.array([[-1.0, -1.0], [0.5, 0.0]])
    around = Neighbourhood.of(np.zeros(2), np.full(2, -1.0), np.full(2, 1.0))
    walk = Walk(line_net(), around, rows)
    assert walk.find(1.2) is None
    found = walk.find(1.2, known=[np.array([1.0, 1.0])])
    assert found is not None
    assert found.point == pytest.approx([1.0, 0.4])
    assert walk.find(0.3, max_programs=0) is None
