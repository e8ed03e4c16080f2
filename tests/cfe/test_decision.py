"""The evaluator: the same bits in any company, on any number of threads, and at the threshold."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from geco_ray.cfe import decision
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.model_stack import StackedModels
from geco_ray.cfe.rowwise import DevicePass
from geco_ray.cfe.validity import count_disagreements

SHAPES = ((32, 32), (32, 32), (8,), (64, 32, 16), ())


def stack(count: int) -> StackedModels:
    """Untrained networks of four shapes in turn."""
    return StackedModels([Mlp.initial(7, SHAPES[seed % len(SHAPES)], seed=seed) for seed in range(count)])


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """700 rows: more than two tiles of a single network, and an odd number of them."""
    return np.random.default_rng(3).standard_normal((700, 7))


@pytest.fixture(scope="module")
def whole(rows: np.ndarray) -> np.ndarray:
    """The logits of all rows and 200 networks, asked together."""
    return stack(200).logit(rows)


@pytest.mark.parametrize("count", [1, 25, 200])
def test_a_networks_bits_do_not_depend_on_its_stack(rows: np.ndarray, whole: np.ndarray, count: int) -> None:
    np.testing.assert_array_equal(stack(count).logit(rows), whole[:, :count])


def test_a_rows_bits_do_not_depend_on_its_place(rows: np.ndarray, whole: np.ndarray) -> None:
    models = stack(25)
    for row in (0, 1, 255, 256, 511, 699):
        np.testing.assert_array_equal(models.logit(rows[row : row + 1])[0], whole[row, :25])
    order = np.random.default_rng(0).permutation(len(rows))
    np.testing.assert_array_equal(models.logit(rows[order]), whole[order, :25])
    np.testing.assert_array_equal(models.logit(np.asfortranarray(rows[::-3])), whole[::-3, :25])


def test_a_network_alone_decides_as_in_the_stack(rows: np.ndarray, whole: np.ndarray) -> None:
    for index, model in enumerate(stack(10).models):
        np.testing.assert_array_equal(model.logit(rows), whole[:, index])
        np.testing.assert_array_equal(model.favourable(rows), whole[:, index] >= 0)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_threads_change_no_bit(rows: np.ndarray, whole: np.ndarray, threads: str) -> None:
    code = (
        "import sys, numpy as np; from geco_ray.cfe.mlp import Mlp; "
        "x = np.random.default_rng(3).standard_normal((700, 7)); "
        "sys.stdout.buffer.write(Mlp.initial(7, (32, 32), seed=0).logit(x).tobytes())"
    )
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    set_threads = f"import os; os.environ.update(dict.fromkeys({names!r}, {threads!r})); "
    child = subprocess.run([sys.executable, "-c", set_threads + code], capture_output=True, check=True)
    np.testing.assert_array_equal(np.frombuffer(child.stdout, dtype=np.float32), whole[:, 0])


def test_the_sum_is_the_one_that_is_written_down(rows: np.ndarray) -> None:
    """Bias first, then unit by unit, everything rounded to float32 at each step."""
    model, row = Mlp.initial(7, (8,), seed=1), rows[5].astype(np.float32)
    hidden = []
    for weights, total in zip(model.weights[0], model.biases[0], strict=True):
        for weight, value in zip(weights, row, strict=True):
            total = np.float32(total + np.float32(weight * value))
        hidden.append(max(total, np.float32(0)))
    logit = model.biases[1][0]
    for weight, value in zip(model.weights[1][0], hidden, strict=True):
        logit = np.float32(logit + np.float32(weight * value))
    assert model.logit(rows[5:6])[0] == logit


def test_at_the_threshold_and_one_unit_in_the_last_place_beside_it() -> None:
    """A network whose logit is the row minus 0.3, exactly."""
    at = np.float32(0.3)
    model = Mlp((np.ones((1, 1), dtype=np.float32),), (np.array([-at]),))
    rows = np.array([[np.nextafter(at, np.float32(0))], [at], [np.nextafter(at, np.float32(1))]])
    assert model.logit(rows).tolist() == [-np.spacing(at), 0, np.spacing(at)]
    assert model.favourable(rows).tolist() == [False, True, True]
    assert decision.favourable(model.probability(rows)).tolist() == [False, True, True]


def across(model: Mlp, adverse: np.ndarray, favourable: np.ndarray) -> np.ndarray:
    """Rows on the segment between two rows, one unit in the last place apart, with the threshold in their middle."""
    low, high = np.float32(0), np.float32(1)
    place = lambda share: (adverse + share * (favourable - adverse)).astype(np.float32)  # noqa: E731
    while np.nextafter(low, high) < high:
        middle = np.float32((low + high) / 2)
        low, high = (low, middle) if model.favourable(place(middle)[None])[0] else (middle, high)
    shares = [low + number * np.spacing(low) for number in range(-8, 9)]
    return np.stack([place(np.float32(share)) for share in shares])


def test_rows_within_rounding_of_the_threshold_are_decided_alike_everywhere(rows: np.ndarray) -> None:
    models = stack(200)
    whole = models.favourable(rows)
    undecided = np.flatnonzero((whole.mean(axis=0) > 0.1) & (whole.mean(axis=0) < 0.9))
    assert len(undecided) > 20
    for index in undecided[:20]:
        model, answers = models.models[index], whole[:, index]
        near = across(model, rows[~answers][0], rows[answers][0])
        decided = model.favourable(near)
        assert decided.any()
        assert not decided.all()
        assert np.abs(model.logit(near)).max() < 1e-5
        assert [model.favourable(row[None])[0] for row in near] == decided.tolist()
        np.testing.assert_array_equal(models.favourable(np.concatenate([rows, near]))[len(rows) :, index], decided)
        np.testing.assert_array_equal(decision.favourable(models.probability(near)[:, index]), decided)


def test_a_probability_is_favourable_exactly_where_its_logit_is() -> None:
    tiny = np.float32(1e-45)  # its logistic function is 0.5 in float32 on either side
    logits = np.array([-200, -1, -1e-9, -tiny, -0.0, 0, tiny, 1e-9, 1, 200, np.nan], dtype=np.float32)
    p = decision.probability(logits)
    assert p.dtype == np.float32
    np.testing.assert_array_equal(decision.favourable(p), logits >= 0)
    np.testing.assert_array_equal(p[[0, 5, 9]], np.array([0, 0.5, 1], dtype=np.float32))
    np.testing.assert_allclose(p[:-1], 1 / (1 + np.exp(-logits[:-1].astype(np.float64))), rtol=0, atol=6e-8)


def test_a_row_too_large_for_float32_is_not_favourable_by_accident() -> None:
    model = Mlp.initial(2, (4,), seed=0)
    huge = np.array([[1e300, -1e300], [3e38, 3e38]])
    assert not (model.favourable(huge) & ~(model.logit(huge) >= 0)).any()
    assert model.favourable(np.array([[np.nan, 0.0]])).tolist() == [False]


def test_other_features_are_refused() -> None:
    with pytest.raises(ValueError, match="expected rows of 7 features"):
        stack(3).logit(np.zeros((2, 6)))
    with pytest.raises(ValueError, match="one number of inputs"):
        StackedModels([Mlp.initial(3, seed=1), Mlp.initial(4, seed=1)])
    assert stack(3).favourable(np.empty((0, 7))).shape == (0, 3)


class Perturbed:
    """The same networks as kernels would see them that get these (row, network) pairs wrong."""

    def __init__(self, models: StackedModels, wrong: list[tuple[int, int]]) -> None:
        self.models, self.wrong = models, wrong

    def favourable(self, x: np.ndarray) -> np.ndarray:
        answers = self.models.favourable(x).copy()
        for row, network in self.wrong:
            answers[row, network] ^= True
        return answers


def test_what_other_kernels_say_otherwise_is_counted(rows: np.ndarray) -> None:
    models = stack(5)
    made = pa.table({
        "status": ["found", "not_found", "found"],
        "factual": rows[:3].tolist(),
        "counterfactual": [rows[3].tolist(), None, rows[4].tolist()],
    })  # fmt: skip
    assert count_disagreements(models, Perturbed(models, []), made) == 0
    assert count_disagreements(models, Perturbed(models, [(0, 1), (1, 4)]), made) == 4  # of factuals and of points
    assert count_disagreements(models, Perturbed(models, [(0, 0)]), made.slice(1, 1)) == 1
    assert count_disagreements(models, Perturbed(models, [(0, 0)]), made.slice(0, 0)) == 0


def test_a_devices_own_kernels_see_nearly_the_same(rows: np.ndarray) -> None:
    models = stack(5)
    decided, seen = models.favourable(rows), DevicePass(models.models, "cpu").favourable(rows)
    sure = np.abs(models.logit(rows)) > 1e-5
    assert seen.shape == (700, 5)
    np.testing.assert_array_equal(seen[sure], decided[sure])
    assert sure.mean() > 0.99
