"""A trial's configuration says in words which cells it is."""

from __future__ import annotations

from geco_ray.experiments.cfe.cells import BaseCell, CounterfactualCell, VariantCell
from geco_ray.registry import Options
from geco_ray.runtime.trials import describe

BASE = BaseCell("compas", "f" * 8, 2026, "paper")
MODEL = {"benchmark": "cfe", "stage": "models", "dataset": "compas", "seeding": "paper"}


class Steps(Options):
    steps: int = 20


def variants(*numbers: int) -> list[VariantCell]:
    return [VariantCell(BASE, "seed", number) for number in numbers]


def test_one_cell_is_told_by_its_values_without_fingerprints() -> None:
    assert describe([BASE]) == MODEL | {"kind": "base", "base_seed": 2026}
    cell = CounterfactualCell(BASE, "wachter", Steps(), "paper")
    assert describe([cell]) == MODEL | {
        "stage": "counterfactuals", "base_seed": 2026, "method": "wachter", "method_options": {"steps": 20},
        "protocol": "paper",
    }  # fmt: skip


def test_a_pack_is_told_by_the_range_or_the_list_of_what_differs() -> None:
    common = MODEL | {"kind": "variant", "base_seed": 2026, "family": "seed"}
    assert describe(variants(*range(25))) == common | {"variant": "0 to 24"}
    assert describe(variants(0, 1, 3)) == common | {"variant": [0, 1, 3]}
    assert describe(variants(4, 5)) == common | {"variant": [4, 5]}
    assert describe(variants(7)) == common | {"variant": 7}
