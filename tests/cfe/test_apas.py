"""APΔS: radius, sampled networks, the loop over margins, proofs in the loop, and the paper's numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from geco_ray.cfe.base_model import train_base
from geco_ray.cfe.data.datasets import load_dataset
from geco_ray.cfe.factuals import select_factuals
from geco_ray.cfe.methods.apas.calibration import calibrate_radius, fine_tune, largest_change, replica_seeds
from geco_ray.cfe.methods.apas.diagnostic import diagnose, independent_models, initialisation_radius
from geco_ray.cfe.methods.apas.options import ApasOptions
from geco_ray.cfe.methods.apas.sampling import SampledNetworks, sample_size
from geco_ray.cfe.methods.apas.search import Apas
from geco_ray.cfe.methods.base import GenerationTask
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool


def line_model() -> Mlp:
    """Logit = x_0 for two features, as relu(x_0) - relu(-x_0)."""
    first = np.array([[1.0, 0.0], [-1.0, 0.0]], dtype=np.float32)
    second = np.array([[1.0, -1.0]], dtype=np.float32)
    return Mlp((first, second), (np.zeros(2, np.float32), np.zeros(1, np.float32)))


def line_task(reach: float = 2.0, protocol: str = "paper") -> GenerationTask:
    """Rows at x_0 = -1 and ``reach``; the largest logit of the box is ``reach``."""
    x = np.array([[-1.0, -1.0], [reach, 1.0]], dtype=np.float32)
    y = np.array([0, 1], dtype=np.int64)
    return GenerationTask("toy", 2026, protocol, "paper", line_model(), x, y, x, y, x, y)


def test_sample_size_and_margins_are_the_papers() -> None:
    assert sample_size(0.999, 0.995) == 1379
    margins = ApasOptions().margins()
    assert len(margins) == 100
    assert margins[:3] == pytest.approx([0.01, 0.21, 0.41])
    assert margins[-1] == pytest.approx(19.81)
    assert ApasOptions(first_margin=0.0, margin_step=0.5, last_margin=1.0).margins() == [0.0, 0.5, 1.0]


def test_sampled_networks_are_the_base_model_within_the_radius() -> None:
    model = Mlp.initial(3, (4, 5), seed=1)
    networks = SampledNetworks(model, 0.02, 200, seed=5)
    rng = np.random.default_rng(0)
    for point in rng.normal(size=(20, 3)):
        expected = bool(model.favourable(point[None])[0])
        if abs(model.logit(point[None])[0]) > 0.5:  # far beyond what 0.02 can change here
            assert (networks.favourable(point) == expected).all()
    assert (
        SampledNetworks(model, 1e-12, 3, seed=0).favourable(np.zeros(3)).tolist()
        == [bool(model.favourable(np.zeros((1, 3)))[0])] * 3
    )


def test_sampled_networks_follow_the_generator_parameter_by_parameter() -> None:
    import torch

    model = Mlp.initial(2, (3,), seed=1)
    generator = torch.Generator().manual_seed(9)
    draws = [
        torch.empty((50, *p.shape)).uniform_(-0.9, 0.9, generator=generator).numpy() + p
        for pair in zip(model.weights, model.biases, strict=True)
        for p in pair
    ]
    point = np.array([0.3, -0.2])
    networks = [Mlp((draws[0][i], draws[2][i]), (draws[1][i], draws[3][i])) for i in range(50)]
    expected = [bool(network.favourable(point[None])[0]) for network in networks]
    assert 0 < sum(expected) < 50
    assert SampledNetworks(model, 0.9, 50, seed=9).favourable(point).tolist() == expected


def test_fine_tuning_moves_like_adam_and_leaves_the_model_alone() -> None:
    model = line_model()
    x = np.array([[1.0, 0.0]], dtype=np.float32)
    tuned = fine_tune(model, x, np.array([0]))
    # One step of a fresh Adam moves every parameter with a gradient by the learning rate.
    assert largest_change(model, tuned) == pytest.approx(1e-3, rel=1e-3)
    assert model.weights[0][0, 0] == 1.0


def test_replica_seeds_under_both_seedings() -> None:
    assert replica_seeds(BaseKey("diabetes", 2026))[:2] == [202026, 202027]
    assert len(set(replica_seeds(BaseKey("diabetes", 2026, "independent")))) == 10


def test_the_margin_rises_until_all_networks_agree() -> None:
    options = ApasOptions(radius=0.05)
    (answer,) = Apas(line_task(), options).generate(np.array([[-0.5, 0.0]]), [0])
    assert answer.status == "found"
    assert answer.point is not None
    margin = answer.columns["margin"]
    assert answer.point == pytest.approx([margin + 1e-4, 0.0], abs=1e-6)
    networks = SampledNetworks(line_model(), 0.05, 1379, seed=2026)
    assert networks.accept(answer.point)
    assert not networks.accept(np.array([margin - 0.2 + 1e-4, 0.0])), "the margin before must have been rejected"
    assert answer.columns["margins_tried"] == round((margin - 0.01) / 0.2) + 1
    assert answer.columns["l1_distance"] == pytest.approx(0.5 + margin + 1e-4)
    assert 0 < answer.columns["l1_lower_bound"] <= answer.columns["l1_distance"] + 1e-9


def test_hold_out_decides_the_certificate_only() -> None:
    """The hold-out of request i is the sample of seed b + 1000003 + i; the point is returned either way."""
    # Seven networks and a fine margin: the accepted point is borderline, so hold-outs disagree.
    options = ApasOptions(radius=0.3, confidence=0.5, robustness=0.9, margin_step=0.02)
    answers = Apas(line_task(), options).generate(np.tile([[-0.5, 0.0]], (30, 1)), range(30))
    points = {tuple(answer.point) for answer in answers if answer.point is not None}
    assert len(points) == 1
    point = np.array(points.pop())
    for i, answer in enumerate(answers):
        networks = SampledNetworks(line_model(), 0.3, 7, seed=2026 + 1_000_003 + i)
        assert answer.columns["certified"] is networks.accept(point)
    assert len({answer.columns["certified"] for answer in answers}) == 2


@pytest.mark.parametrize(("protocol", "tried", "reason"), [("paper", 100, "no margin"), ("corrected", 2, "no point")])
def test_an_infeasible_margin(protocol: str, tried: int, reason: str) -> None:
    # The box reaches a logit of 0.1: margin 0.01 is rejected by the samples, 0.21 is out of reach.
    prepared = Apas(line_task(0.1, protocol), ApasOptions(radius=0.3))
    (answer,) = prepared.generate(np.array([[-0.5, 0.0]]), [0])
    assert (answer.point, answer.status) == (None, "not_found")
    assert answer.reason is not None
    assert answer.reason.startswith(reason)
    assert answer.columns["margins_tried"] == tried
    assert answer.columns["certified"] is None


def test_a_reachable_point_is_found_without_any_favourable_row() -> None:
    x = np.array([[-1.0, 0.0], [-0.5, 2.0]], dtype=np.float32)
    second = np.array([[1.0, 1.0]], dtype=np.float32)
    first = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    model = Mlp((first, second), (np.zeros(2, np.float32), np.array([-2.05], np.float32)))
    task = replace(line_task(), model=model, train_x=x)
    (answer,) = Apas(task, ApasOptions(radius=1e-6)).generate(np.array([[-0.8, 0.2]]), [0])
    assert answer.status == "not_found"
    wide = replace(task, train_x=np.array([[0.5, 0.0], [-0.5, 2.0]], dtype=np.float32))
    assert not model.favourable(wide.train_x).any()
    (answer,) = Apas(wide, ApasOptions(radius=1e-6)).generate(np.array([[-0.4, 0.2]]), [0])
    assert answer.status == "found"
    assert answer.point is not None
    assert model.favourable(answer.point[None])[0]


def test_a_spent_budget_of_programs_is_a_status() -> None:
    prepared = Apas(line_task(), ApasOptions(radius=0.05, max_programs=1))
    (answer,) = prepared.generate(np.array([[-0.5, 0.0]]), [0])
    assert answer.status == "budget"
    assert answer.columns["linear_programs"] == 1


def test_proof_in_the_loop_gives_bound_gap_and_status(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    plain = Apas(toy_task, ApasOptions(starts=1)).generate(toy_factuals[:4], range(4))
    proven = Apas(toy_task, ApasOptions(starts=1, proof="full")).generate(toy_factuals[:4], range(4))
    for one, other in zip(plain, proven, strict=True):
        assert other.columns["proof_status"] == "optimal"
        assert other.columns["l1_gap"] <= 1.001e-4
        assert one.columns["proof_status"] == "none"
        if one.columns["margin"] == other.columns["margin"]:
            assert one.columns["l1_lower_bound"] <= other.columns["l1_lower_bound"] * (1 + 1e-9)
            assert other.columns["l1_distance"] <= one.columns["l1_distance"] + 1e-9


def test_a_better_point_of_the_proof_replaces_the_incumbent_and_must_be_accepted(
    toy_task: GenerationTask, toy_factuals: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a walk that stops at its start the proof has to find the closest point itself."""
    from geco_ray.cfe.milp.walk import Candidate, Walk

    options = ApasOptions(starts=12, proof="full")
    (good,) = Apas(toy_task, options).generate(toy_factuals[:1], [0])

    def lazy(self: Walk, logit: float, known: object = (), max_programs: int = 0) -> Candidate:
        point = self._starting_points(logit, ())[-1]
        return Candidate(point, self.around.distance(point))

    monkeypatch.setattr(Walk, "find", lazy)
    (answer,) = Apas(toy_task, options).generate(toy_factuals[:1], [0])
    assert answer.columns["proof_improved"] is True
    assert answer.columns["proof_status"] == "optimal"
    if answer.columns["margin"] == good.columns["margin"]:
        assert answer.columns["l1_distance"] == pytest.approx(good.columns["l1_distance"], rel=3e-4)
    assert answer.point is not None
    assert toy_task.model.favourable(answer.point[None])[0]
    radius = Apas(toy_task, options).set_up["radius"]
    assert SampledNetworks(toy_task.model, float(str(radius)), 1379, seed=2026).accept(answer.point)


def test_diagnostic_returns_nothing_for_networks_that_start_anew(
    toy_task: GenerationTask, toy_factuals: np.ndarray
) -> None:
    others = independent_models(toy_task, count=2)
    assert len(others) == 2
    radius = initialisation_radius(toy_task.model, others)
    assert radius.value == max(radius.replicas) > 0.1
    outcome = diagnose(toy_task, others, toy_factuals, range(len(toy_factuals)), ApasOptions(starts=1, margin_step=2.0))
    assert len(outcome.answers) == 5
    assert outcome.returned == 0
    assert sum(outcome.statuses.values()) == 5


PAPER_RADII = {"breast_cancer": ("0.007743", "0.007494"), "diabetes": ("0.009802", "0.009563")}


@pytest.fixture(scope="session")
def base_task() -> Callable[[str, int, Path | None], tuple[GenerationTask, np.ndarray, list[int]]]:
    """A real task with its factuals, by data set and base seed."""

    def make(name: str, seed: int, folder: Path | None) -> tuple[GenerationTask, np.ndarray, list[int]]:
        data, key = load_dataset(name, folder), BaseKey(name, seed)
        pool = Pool.of(data)
        base = train_base(key, pool)
        picked = select_factuals(base, data.test)
        n = len(pool.train_y)
        task = GenerationTask(
            name, seed, "paper", "paper", base.model, pool.x[:n], pool.train_y, pool.x[n:], pool.update_y,
            pool.val_x, pool.val_y,
        )  # fmt: skip
        return task, picked.x, list(range(len(picked.x)))

    return make


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes"])
def test_calibrated_radii_are_the_papers_to_all_printed_digits(
    name: str, base_task: Callable[..., tuple[GenerationTask, np.ndarray, list[int]]], request: pytest.FixtureRequest
) -> None:
    folder = None if name == "breast_cancer" else request.getfixturevalue("data_dir")
    for seed, expected in zip((2026, 2029), PAPER_RADII[name], strict=True):
        task, _, _ = base_task(name, seed, folder)
        radius = calibrate_radius(task.model, task.update_x, task.update_y, replica_seeds(BaseKey(name, seed)))
        assert f"{radius.value:.6f}" == expected


def test_breast_cancer_requests_are_all_answered_at_the_measured_margins(
    base_task: Callable[..., tuple[GenerationTask, np.ndarray, list[int]]],
) -> None:
    task, factuals, ids = base_task("breast_cancer", 2026, None)
    answers = Apas(task, ApasOptions()).generate(factuals[:10], ids[:10])
    assert {answer.status for answer in answers} == {"found"}
    margins = [round(float(str(answer.columns["margin"])), 2) for answer in answers]
    assert set(margins) <= {0.21, 0.41, 0.61}
    assert all(task.model.favourable(answer.point[None])[0] for answer in answers if answer.point is not None)
