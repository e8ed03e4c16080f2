"""The eight families: ids, levels and constructions, each against its definition written out again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from geco_ray.cfe.base_model import BaseModel, train_base, train_bases
from geco_ray.cfe.changes.base import (
    FAMILIES,
    ORDER,
    VARIANTS_PER_FAMILY,
    Variant,
    VariantSpec,
    family_names,
    iter_variants,
    make_variants,
    variant_specs,
)
from geco_ray.cfe.data.datasets import load_dataset
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool, TrainingJob
from geco_ray.errors import UserError

KEY = BaseKey("breast_cancer", 2026)


@pytest.fixture(scope="module")
def pool() -> Pool:
    torch.set_num_threads(1)
    return Pool.of(load_dataset("breast_cancer"))


@pytest.fixture(scope="module")
def base(pool: Pool) -> BaseModel:
    return train_base(KEY, pool)


def job(family: str, variant: int, base: BaseModel, pool: Pool) -> TrainingJob:
    spec = variant_specs(family, base.key, [variant])[0]
    made = FAMILIES.get(family).target().change(spec, base, pool)
    assert isinstance(made, TrainingJob)
    return made


def test_eight_families_of_25_in_the_banks_order() -> None:
    assert family_names() == list(ORDER)
    specs = [spec for family in family_names() for spec in variant_specs(family, KEY)]
    assert len(specs) == 200
    assert len({spec.change_id for spec in specs}) == 200
    for family in family_names():
        assert [spec.variant for spec in variant_specs(family, KEY)] == list(range(VARIANTS_PER_FAMILY))


@pytest.mark.parametrize(
    ("family", "variant", "change_id"),
    [
        ("seed", 0, "seed:new_initialization:r0:seed2027"),
        ("seed", 24, "seed:new_initialization:r24:seed2051"),
        ("bootstrap", 3, "bootstrap:100_percent:r3:seed12029"),
        ("deletion", 0, "deletion:0.01:r0:seed22036"),
        ("deletion", 9, "deletion:0.05:r0:seed22076"),
        ("deletion", 24, "deletion:0.1:r7:seed22133"),
        ("data_addition", 0, "data_addition:0.25_update_pool:r0:seed32276"),
        ("data_addition", 24, "data_addition:1_update_pool:r0:seed33026"),
        ("label_update", 8, "label_update:0.01:r8:seed42044"),
        ("training_config", 0, "training_config:adam_lr_0.00025_wd_0:seed2026"),
        ("training_config", 8, "training_config:adam_lr_0.001_wd_1e-05:seed2026"),
        ("training_config", 18, "training_config:adam_lr_0.004_wd_0.001:seed2026"),
        ("training_config", 24, "training_config:sgd_lr_0.03_wd_0.001:seed2026"),
        ("architecture", 0, "architecture:8:seed2026"),
        ("architecture", 19, "architecture:128_128:seed2026"),
        ("architecture", 24, "architecture:32_32_16:seed2026"),
        ("bounded_parameter", 0, "bounded_parameter:linf_0.001:r0"),
        ("bounded_parameter", 24, "bounded_parameter:linf_0.05:r4"),
    ],
)
def test_change_ids_are_the_papers(family: str, variant: int, change_id: str) -> None:
    spec = variant_specs(family, KEY, [variant])[0]
    assert spec.change_id == change_id
    assert spec.level in change_id


def test_sizes_of_levels() -> None:
    def counts(family: str) -> list[int]:
        levels = [spec.level for spec in variant_specs(family, KEY)]
        return [levels.count(level) for level in dict.fromkeys(levels)]

    assert counts("deletion") == counts("label_update") == [9, 8, 8]
    assert counts("data_addition") == [8, 8, 8, 1]
    assert counts("bounded_parameter") == [5] * 5
    layers = [spec.level.count("_") + 1 for spec in variant_specs("architecture", KEY)]
    assert [layers.count(n) for n in (1, 2, 3)] == [5, 15, 5]
    assert "32_32" not in [spec.level for spec in variant_specs("architecture", KEY)]
    configs = [spec.level.split("_")[0] for spec in variant_specs("training_config", KEY)]
    assert (configs.count("adam"), configs.count("sgd")) == (19, 6)


def test_new_seed_changes_the_start_alone(base: BaseModel, pool: Pool) -> None:
    made = job("seed", 2, base, pool)
    assert made.initial.digest() == Mlp.initial(30, seed=2029).digest()
    assert made.rows.tolist() == list(range(284))


def test_bootstrap_by_definition(base: BaseModel, pool: Pool) -> None:
    made = job("bootstrap", 4, base, pool)
    expected = np.random.default_rng(2026 + 10_000 + 4).integers(0, 284, size=284)
    assert made.rows.tolist() == expected.tolist()
    assert made.labels.tolist() == pool.train_y[expected].tolist()
    assert made.initial.digest() == Mlp.initial(30, seed=2026).digest()


def test_deletion_by_definition(base: BaseModel, pool: Pool) -> None:
    made = job("deletion", 10, base, pool)
    expected = np.sort(np.random.default_rng(2026 + 20_000 + 50 + 1).choice(284, size=270, replace=False))
    assert made.rows.tolist() == expected.tolist()
    assert len(job("deletion", 0, base, pool).rows) == 281
    assert len(job("deletion", 24, base, pool).rows) == 256


def test_data_addition_by_definition(base: BaseModel, pool: Pool) -> None:
    made = job("data_addition", 8, base, pool)
    added = np.sort(np.random.default_rng(2026 + 30_000 + 500).choice(57, size=28, replace=False))
    assert made.rows.tolist() == [*range(284), *(284 + added)]
    assert made.labels.tolist() == [*pool.train_y, *pool.update_y[added]]
    whole = job("data_addition", 24, base, pool)
    assert whole.rows.tolist() == list(range(341))
    assert [len(job("data_addition", v, base, pool).rows) - 284 for v in (0, 16)] == [14, 43]


def test_label_update_by_definition(base: BaseModel, pool: Pool) -> None:
    made = job("label_update", 17, base, pool)
    turned = np.random.default_rng(2026 + 40_000 + 100).choice(284, size=28, replace=False)
    assert np.flatnonzero(made.labels != pool.train_y).tolist() == sorted(turned.tolist())
    assert set(np.unique(made.labels)) == {0, 1}
    assert int((job("label_update", 0, base, pool).labels != pool.train_y).sum()) == 3


def test_architecture_and_config_by_definition(base: BaseModel, pool: Pool) -> None:
    assert job("architecture", 18, base, pool).initial.hidden == (128, 64)
    settings = job("training_config", 22, base, pool).settings
    assert (settings.optimizer, settings.learning_rate, settings.weight_decay) == ("sgd", 0.03, 0.0)
    assert settings.momentum == 0.9


def test_perturbation_is_bounded_by_its_radius_and_reaches_it(base: BaseModel, pool: Pool) -> None:
    variants = make_variants(variant_specs("bounded_parameter", KEY), base, pool)
    for variant in variants:
        radius = float(variant.spec.level.removeprefix("linf_"))
        pairs = zip(
            (*variant.model.weights, *variant.model.biases), (*base.model.weights, *base.model.biases), strict=True
        )
        moves = np.concatenate([(a - b).ravel() for a, b in pairs])
        assert np.abs(moves).max() == pytest.approx(radius, rel=1e-3)
        assert np.abs(moves).mean() == pytest.approx(radius / 2, rel=0.05)
    first = torch.Generator().manual_seed(2026 + 80_000 + 1000)
    direction = torch.empty(32, 30).uniform_(-1, 1, generator=first).numpy()
    move = variants[0].model.weights[0] - base.model.weights[0]
    assert np.corrcoef(move.ravel(), direction.ravel())[0, 1] > 0.9999


def test_a_family_is_an_iterator_over_any_model_and_data() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3)).astype(np.float32)
    y = (x[:, 0] + 0.3 * rng.normal(size=120) > 0).astype(np.int64)
    pool = Pool(x[:90], y[:60], y[60:90], x[90:], y[90:])
    base = BaseModel(BaseKey("mine", 1, "independent"), Mlp.initial(3, (5,), seed=1))
    for family in family_names():
        made = list(iter_variants(family, base, pool, at_once=7))
        assert [variant.spec.variant for variant in made] == list(range(25))
        if family != "architecture":
            assert {variant.model.hidden for variant in made} == {(5,)}


def test_variants_are_the_same_alone_and_together(base: BaseModel, pool: Pool) -> None:
    specs = [variant_specs(family, KEY, [3])[0] for family in ("bootstrap", "label_update", "architecture")]
    together = make_variants(specs, base, pool)
    data = load_dataset("breast_cancer").test.x
    for spec, variant in zip(specs, together, strict=True):
        alone = make_variants([spec], base, pool)[0]
        assert (alone.epochs, alone.best_epoch) == (variant.epochs, variant.best_epoch)
        np.testing.assert_allclose(alone.model.probability(data), variant.model.probability(data), atol=1e-5)


def test_base_models_train_alone_as_in_a_stack(pool: Pool, base: BaseModel) -> None:
    keys = [BaseKey("breast_cancer", seed) for seed in (2027, 2026)]
    both = train_bases(keys, pool)
    assert (both[1].epochs, both[1].best_epoch) == (base.epochs, base.best_epoch) == (146, 116)
    np.testing.assert_allclose(both[1].model.weights[0], base.model.weights[0], atol=1e-5)
    new_seed: Variant = make_variants(variant_specs("seed", KEY, [0]), base, pool)[0]
    np.testing.assert_allclose(new_seed.model.weights[0], both[0].model.weights[0], atol=1e-5)


def test_unknown_families_and_variants_are_refused() -> None:
    with pytest.raises(UserError, match="bootstrap"):
        variant_specs("bootstrp", KEY)
    with pytest.raises(UserError, match="no variant 25"):
        variant_specs("bootstrap", KEY, [25])
    assert FAMILIES.get("New seed").name == "seed"


def test_a_new_family_is_one_registration(base: BaseModel, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FAMILIES, "_entries", {entry.name: entry for entry in FAMILIES.entries()})

    @FAMILIES.register("nothing", title="No change")
    class Nothing:
        def specs(self, base: BaseKey) -> list[VariantSpec]:
            return [VariantSpec("nothing", 0, "none", 0, 0, "nothing:none:r0", "none")]

        def change(self, spec: VariantSpec, base: BaseModel, pool: Pool) -> Mlp:
            return base.model

    assert family_names() == [*ORDER, "nothing"]
    assert next(iter_variants("nothing", base, pool)).model is base.model


def test_planning_needs_no_torch(assert_imports_nothing: Callable[..., str]) -> None:
    code = (
        "from geco_ray.cfe.changes.base import *; from geco_ray.cfe.seeding import BaseKey;"
        "[variant_specs(f, BaseKey('d', 2026)) for f in family_names()]"
    )
    assert_imports_nothing(code, ["torch", "sklearn", "scipy", "pandas", "ray"])
