"""A trial's configuration says in words which cells it is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from geco_ray.cells import Cell
from geco_ray.errors import DeviceLostError, StorageError
from geco_ray.experiments.base import WorkerContext
from geco_ray.experiments.cfe.cells import BaseCell, CounterfactualCell, VariantCell
from geco_ray.registry import Options
from geco_ray.runtime import trials
from geco_ray.runtime.trials import PackWork, describe

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


def work(monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> PackWork:
    """A pack of three quick epochs that ends well, or with ``error``."""

    def epochs(pack: Sequence[Cell], context: WorkerContext) -> list[object]:
        assert context.on_epoch is not None
        for number in (1, 2, 3):
            context.on_epoch(pack[0], {"epoch": number, "validation_loss": 1 / number})
        if error is not None:
            raise error
        return []

    monkeypatch.setattr(trials, "run_pack", epochs)
    return PackWork([BASE], WorkerContext("nowhere"))


def test_tune_hears_of_epochs_before_the_pack_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_SECONDS_BETWEEN_EPOCHS", 0.0)
    pack = work(monkeypatch)
    told = [pack.next_result() for _ in range(3)]
    assert told[1] == {"done": False, "cell": BASE.title, "epoch": 2, "validation_loss": 0.5}
    assert pack.next_result() == {"done": True, "storage": None, "outcomes": []}


def test_of_many_epochs_a_second_only_the_first_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = work(monkeypatch)
    assert [pack.next_result()["done"] for _ in range(2)] == [False, True]


def test_what_ends_a_pack_ends_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = work(monkeypatch, DeviceLostError("no GPU any more"))
    pack.next_result()
    with pytest.raises(DeviceLostError):
        pack.next_result()
    pack = work(monkeypatch, StorageError("disk full"))
    pack.next_result()
    assert pack.next_result() == {"done": True, "storage": "disk full", "outcomes": []}
