"""The two ways of seeding, and what the published seeds share."""

from __future__ import annotations

import pytest

from geco_ray.cfe.changes.base import family_names, variant_specs
from geco_ray.cfe.seeding import BASE_SEEDS, BaseKey
from geco_ray.errors import UserError

PAPER_DRAWS = {
    "seed": 29,
    "bootstrap": 29,
    "deletion": 37,
    "data_addition": 37,
    "label_update": 37,
    "training_config": 25,
    "architecture": 25,
    "bounded_parameter": 45,
}


def distinct_draws(family: str, seeding: str) -> int:
    keys = [BaseKey("diabetes", seed, seeding) for seed in BASE_SEEDS]
    return len({spec.draw for key in keys for spec in variant_specs(family, key)})


@pytest.mark.parametrize("family", sorted(PAPER_DRAWS))
def test_distinct_draws_behind_125_variants(family: str) -> None:
    assert distinct_draws(family, "paper") == PAPER_DRAWS[family]
    fixed = family in ("training_config", "architecture")
    every = 25 if fixed else 121 if family == "data_addition" else 125  # the whole update pool is one set
    assert distinct_draws(family, "independent") == every


def test_ten_published_new_seeds_are_base_models() -> None:
    drawn = [spec.seed for seed in BASE_SEEDS for spec in variant_specs("seed", BaseKey("diabetes", seed))]
    assert sum(seed in BASE_SEEDS for seed in drawn) == 10
    assert sorted(set(drawn)) == list(range(2027, 2056))


def test_independent_seeds_never_meet() -> None:
    keys = [BaseKey(data, seed, "independent") for data in ("diabetes", "heloc") for seed in BASE_SEEDS]
    random = [family for family in family_names() if family not in ("training_config", "architecture")]
    seeds = [spec.seed for key in keys for family in random for spec in variant_specs(family, key)]
    seeds += [key.initial_seed for key in keys]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_seeds_do_not_depend_on_order_or_company() -> None:
    key = BaseKey("diabetes", 2028, "independent")
    assert variant_specs("bootstrap", key, [7])[0] == variant_specs("bootstrap", key)[7]


def test_an_unknown_seeding_is_refused() -> None:
    with pytest.raises(UserError, match="paper"):
        BaseKey("diabetes", 2026, "papr")
