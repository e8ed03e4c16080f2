"""Growing spheres, RobX and BetaRCE against independent computations on one request at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import beta

from geco_ray.cfe.methods.base import METHODS, Deadline, GenerationTask
from geco_ray.cfe.methods.betarce import search as betarce
from geco_ray.cfe.methods.robx.stability import Stability, highest_stability
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.search.spheres import Shells, grow
from geco_ray.cfe.search.streams import Memo, Stream

NEVER = Deadline(None)


def reference_spheres(
    rng: np.random.Generator, centre: np.ndarray, accept: object, norm: int, samples: int, limit: int, bounds: object
) -> tuple[np.ndarray | None, int]:
    """The search as the paper's protocol words it, for one request."""
    high = 0.0
    for shell in range(limit):
        low, high = high, high + 0.1
        direction = rng.standard_normal((samples, len(centre)))
        radius = low + rng.random(samples) * (high - low)
        direction /= np.linalg.norm(direction, ord=norm, axis=1, keepdims=True) + 1e-12
        rows = centre + direction * radius[:, None]
        rows = rows if bounds is None else np.clip(rows, *bounds)
        good = rows[accept(rows)]
        if len(good):
            return good[np.argmin(np.linalg.norm(good - centre, ord=norm, axis=1))], shell + 1
    return None, limit


@pytest.mark.parametrize(("norm", "clipped"), [(1, True), (2, False)])
def test_grow_matches_the_reference(
    norm: int, clipped: bool, toy_task: GenerationTask, toy_factuals: np.ndarray
) -> None:
    bounds = (toy_task.lower, toy_task.upper) if clipped else None
    accept, centres = toy_task.model.favourable, toy_factuals[:6]
    streams = [Stream(np.random.default_rng(i)) for i in range(6)]
    found = grow(centres, streams, accept, Shells(norm, 50, 0.1, 60, bounds), NEVER)
    for i, result in enumerate(found):
        point, shells = reference_spheres(np.random.default_rng(i), centres[i], accept, norm, 50, 60, bounds)
        assert result.shells == shells
        assert result.point == pytest.approx(point, rel=1e-12)


def test_no_shell_accepts() -> None:
    refuse = lambda rows: np.zeros(len(rows), dtype=bool)  # noqa: E731
    found = grow(
        np.zeros((2, 3)), [Stream(np.random.default_rng(i)) for i in range(2)], refuse, Shells(2, 5, 0.1, 4), NEVER
    )
    assert [(f.point, f.shells) for f in found] == [(None, 4), (None, 4)]


def test_streams_with_one_past_share_a_draw_and_part_when_their_pasts_do() -> None:
    memo, calls = Memo(), []

    def draw(generator: np.random.Generator) -> float:
        calls.append(1)
        return float(generator.standard_normal())

    one, two = (Stream(np.random.default_rng(5), memo) for _ in range(2))
    plain = np.random.default_rng(5)
    wanted = [plain.standard_normal() for _ in range(3)]
    assert [one.take("a", draw), two.take("a", draw)] == [wanted[0], wanted[0]]
    assert len(calls) == 1
    two.take("longer", lambda g: g.standard_normal(1000))
    assert one.take("b", draw) == wanted[1]
    assert two.take("b", draw) != wanted[1]
    # Even when the shared draw has been dropped from the memo, a stream goes on where it was.
    for i in range(memo.capacity + 1):
        memo.store(("other", i), 0, None)
    assert one.take("c", draw) == wanted[2]


def plain_stability(model: Mlp, x: np.ndarray, noise: np.ndarray, includes_half: bool) -> float:
    p = model.probability(x + noise).astype(np.float64)
    base = model.probability(x[None])[0]
    favourable = base >= 0.5 if includes_half else base > 0.5
    p = p if favourable else 1 - p
    return float(p.mean() - p.std())


def test_stability_is_mean_minus_std_of_the_class_of_x(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    points = np.concatenate([toy_factuals[:9], toy_task.train_x[toy_task.model.favourable(toy_task.train_x)][:9]])
    stability = Stability(toy_task.model, "cpu", samples=200, std=0.1, includes_half=False)
    got = stability.of(points, stability.draw(np.random.default_rng(3), len(points)))
    noise = np.random.default_rng(3).standard_normal((len(points), 200, 4)) * 0.1
    wanted = [plain_stability(toy_task.model, x, e, False) for x, e in zip(points, noise, strict=True)]
    assert got == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("seen", [10, 50, 90])
def test_no_samples_left_bring_a_point_above_the_bound(seen: int) -> None:
    generator = np.random.default_rng(seen)
    first = torch.as_tensor(generator.beta(generator.uniform(0.2, 8, (40, 1)), 1, (40, seen)))
    bound = highest_stability(first, 100).numpy()
    best = np.full(40, -np.inf)
    for value in np.linspace(0, 1, 2001):
        whole = np.concatenate([first, np.full((40, 100 - seen), value)], axis=1)
        best = np.maximum(best, whole.mean(axis=1) - whole.std(axis=1))
    spread = np.concatenate([first, generator.beta(20, 1, (40, 100 - seen))], axis=1)
    assert (spread.mean(axis=1) - spread.std(axis=1) <= bound).all()
    assert bound == pytest.approx(best, abs=1e-6)


def test_what_is_ruled_out_early_lies_below_and_the_others_keep_their_bits(toy_task: GenerationTask) -> None:
    stability = Stability(toy_task.model, "cpu", samples=200, std=0.5, includes_half=False)
    whole = stability.of(toy_task.train_x[:60], stability.draw(np.random.default_rng(3), 60))
    floor = float(np.quantile(whole, 0.6))
    some = stability.of(toy_task.train_x[:60], stability.draw(np.random.default_rng(3), 60), floor)
    followed = np.isfinite(some)
    assert (some[followed] == whole[followed]).all()
    assert (whole[~followed] <= floor).all()
    assert 10 < followed.sum() < 50


def test_the_class_at_one_half_depends_on_the_switch() -> None:
    flat = Mlp((np.zeros((1, 2), dtype=np.float32),), (np.zeros(1, dtype=np.float32),))
    stepped = Mlp((np.array([[1.0, 0.0]], dtype=np.float32),), (np.zeros(1, dtype=np.float32),))
    for model, includes in ((flat, True), (flat, False), (stepped, True), (stepped, False)):
        stability = Stability(model, "cpu", samples=50, std=1.0, includes_half=includes)
        got = stability.of(np.zeros((1, 2)), stability.draw(np.random.default_rng(0), 1))[0]
        noise = np.random.default_rng(0).standard_normal((1, 50, 2))[0]
        assert got == pytest.approx(plain_stability(model, np.zeros(2), noise, includes), abs=1e-6)


def reference_robx(
    task: GenerationTask, factual: np.ndarray, tau: float, samples: int
) -> tuple[np.ndarray | None, int]:
    """RobX under ``paper`` for one request, on one stream of the base seed."""
    rng, model = np.random.default_rng(task.base_seed), task.model

    def stabilities(points: np.ndarray) -> np.ndarray:
        noise = rng.standard_normal((len(points), samples, points.shape[1])) * 0.1
        return np.array([plain_stability(model, x, e, False) for x, e in zip(points, noise, strict=True)])

    start, _ = reference_spheres(rng, factual, model.favourable, 1, samples, 800, (task.lower, task.upper))
    if stabilities(start[None])[0] > tau:
        return start, 0
    rows = task.train_x[model.probability(task.train_x) > 0.5].astype(np.float64)
    rows = rows[np.argsort(np.abs(rows - start).sum(axis=1), kind="stable")]
    kept = rows[:128][stabilities(rows[:128]) > tau][:10]
    points = np.repeat(start[None], len(kept), axis=0)
    for step in range(1, 801):
        points = 0.1 * kept + 0.9 * points
        passed = np.flatnonzero(stabilities(points) > tau)
        if len(passed):
            return points[passed[0]], step
    return None, 800


@pytest.mark.parametrize("name", ["robx_balanced", "robx_robust"])
def test_robx_under_paper_matches_the_reference(name: str, toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    entry = METHODS.get(name)
    prepared = entry.target(toy_task, entry.parse_options({"samples": 100}))
    tau = prepared.set_up["tau"]
    steps = []
    for factual, answer in zip(toy_factuals[:5], prepared.generate(toy_factuals[:5], range(5)), strict=True):
        point, taken = reference_robx(toy_task, factual, tau, 100)
        assert answer.columns["steps"] == taken
        assert answer.point == pytest.approx(point, abs=1e-9)
        assert answer.columns["stability"] > tau
        steps.append(taken)
    assert max(steps) > 0


def test_robx_threshold_is_a_quantile_and_at_least_one_half(toy_task: GenerationTask) -> None:
    rows = toy_task.train_x[toy_task.model.probability(toy_task.train_x) > 0.5].astype(np.float64)
    noise = np.random.default_rng(2026 + 81_000).standard_normal((len(rows), 100, 4)) * 0.1
    values = [plain_stability(toy_task.model, x, e, False) for x, e in zip(rows, noise, strict=True)]
    assert len(rows) < 128
    for quantile in (0.0, 0.9):
        entry = METHODS.get("robx_balanced")
        prepared = entry.target(toy_task, entry.parse_options({"samples": 100, "quantile": quantile}))
        assert prepared.set_up["tau"] == pytest.approx(max(0.5, np.quantile(values, quantile)), abs=1e-6)


def test_corrected_robx_draws_per_request(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    twice = np.repeat(toy_factuals[:1], 2, axis=0)
    entry = METHODS.get("robx_balanced")
    points = {}
    for protocol in ("paper", "corrected"):
        prepared = entry.target(replace(toy_task, protocol=protocol), entry.parse_options({"samples": 50}))
        points[protocol] = [answer.point for answer in prepared.generate(twice, [3, 4])]
    assert np.array_equal(*points["paper"])
    assert not np.array_equal(*points["corrected"])


def test_thirty_two_helpers_mean_unanimity() -> None:
    assert betarce.lower_bound(32, 32, 0.95) == pytest.approx(0.94219, abs=5e-6)
    assert betarce.lower_bound(31, 32, 0.95) == pytest.approx(0.88419, abs=5e-6)
    assert betarce.lower_bound(20, 32, 0.9) == pytest.approx(beta.ppf(0.1, 20.5, 12.5))
    assert betarce.needed_successes(32, 0.9, 0.95) == 32
    assert betarce.needed_successes(32, 0.5, 0.95) < 32
    assert betarce.needed_successes(3, 0.9, 0.95) == 4


def test_ensemble_counts_what_its_members_say(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    import torch

    models = [Mlp.initial(4, seed=seed) for seed in range(11)]
    ensemble = betarce.Ensemble(models, "cpu")
    rows = torch.tensor(toy_factuals, dtype=torch.float32)
    votes = np.stack([model.favourable(toy_factuals) for model in models])
    assert np.array_equal(ensemble.agreeing(rows).numpy(), votes.sum(axis=0))
    for needed in (0, 4, 11, 12):
        assert np.array_equal(ensemble.at_least(rows, needed).numpy(), votes.sum(axis=0) >= needed)


def test_betarce_asks_all_helpers(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    from geco_ray.cfe.methods.betarce.options import BetarceOptions

    rng = np.random.default_rng(0)
    models = [
        Mlp(
            tuple(w + rng.normal(0, 0.03, w.shape).astype(np.float32) for w in toy_task.model.weights),
            tuple(b.copy() for b in toy_task.model.biases),
        )
        for _ in range(32)
    ]
    prepared = betarce.Betarce(toy_task, BetarceOptions(), models)
    answers = prepared.generate(toy_factuals[:6], range(6))
    assert any(answer.columns["shells"] for answer in answers), "the second stage must be needed somewhere"
    for i, answer in enumerate(answers):
        assert answer.columns["agreeing"] == 32
        assert all(model.favourable(answer.point[None])[0] for model in (*models, toy_task.model))
        rng = toy_task.stream("betarce", i)
        start, shells = reference_spheres(rng, toy_factuals[i], toy_task.model.favourable, 2, 100, 200, None)
        assert answer.columns["start_shells"] == shells
        if not answer.columns["shells"]:
            assert answer.point == pytest.approx(start, rel=1e-12)
