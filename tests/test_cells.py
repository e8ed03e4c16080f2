"""A cell's id holds what changes its result and nothing else, and is the same everywhere and for ever."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from geco_ray.cells import Cell
from geco_ray.experiments.cfe.cells import (
    BaseCell,
    CounterfactualCell,
    ProofCell,
    ProvedCell,
    ValidityCell,
    VariantCell,
)
from geco_ray.experiments.geco.cells import ExplainCell, ScoreCell, TrainCell
from geco_ray.plan.config import RunSettings
from geco_ray.registry import Options


class Steps(Options):
    steps: int = 20
    scale: float = 1


def samples() -> dict[type[Cell], Cell]:
    """One cell of every class."""
    train = TrainCell("demo", "d" * 8, "enc", "e" * 8, "bert_c", Steps(), 0, "paper", encoder_source="/a/b")
    explain = ExplainCell(train, "integrated_gradients", Steps(steps=5), 100)
    base = BaseCell("breast_cancer", "d" * 8, 2026, "paper")
    variants = (VariantCell(base, "seed", 0), VariantCell(base, "seed", 1))
    counterfactuals = CounterfactualCell(base, "wachter", Steps(), "paper")
    blocks = (ProofCell(base, "apas", Steps(), "paper", 0, 10), ProofCell(base, "apas", Steps(), "paper", 10, 20))
    proved = ProvedCell(base, "apas", Steps(), "paper", blocks)
    made = [train, explain, ScoreCell(explain), base, variants[0], counterfactuals, blocks[0], proved]
    return {type(cell): cell for cell in [*made, ValidityCell(counterfactuals, "seed", variants)]}


# Every field of every cell is one or the other. A field that is missing here has not been thought about.
IDENTITY = {
    TrainCell: {
        "dataset", "data", "encoder", "encoder_fingerprint", "paradigm", "paradigm_options", "seed", "protocol",
        "paradigm_code",
    },
    ExplainCell: {"model", "method", "method_options", "sentences", "method_code"},
    ScoreCell: {"explained"},
    BaseCell: {"dataset", "data", "base_seed", "seeding"},
    VariantCell: {"base", "family", "variant", "family_code"},
    CounterfactualCell: {"base", "method", "method_options", "protocol", "method_code"},
    ProofCell: {"base", "method", "method_options", "protocol", "first", "end", "method_code"},
    ProvedCell: {"base", "method", "method_options", "protocol", "blocks", "method_code"},
    ValidityCell: {"counterfactuals", "family", "variants"},
}  # fmt: skip
RUNTIME = {TrainCell: {"encoder_source"}}

# Ids of the samples. A change here re-runs everybody's finished cells: raise VERSION, and say so in the changelog.
GOLDEN = {
    "TrainCell": "ceaf029a85fd4738",
    "ExplainCell": "ceea46ffb8408ad6",
    "ScoreCell": "b421799b6607dbb4",
    "BaseCell": "e13868c34d9086ca",
    "VariantCell": "d9e6796b0c2aa87b",
    "CounterfactualCell": "5d7a5e0e2d74533c",
    "ProofCell": "4e80a85ec15dfdac",
    "ProvedCell": "ceeb1d74b939af7c",
    "ValidityCell": "bd1d515a4598f43a",
}


def subclasses(kind: type[Cell]) -> Iterator[type[Cell]]:
    for child in kind.__subclasses__():
        yield from ([child] if child.__module__.startswith("geco_ray.") else [])
        yield from subclasses(child)


def changed(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case str():
            return value + "x"
        case int():
            return value + 1
        case Steps():
            return Steps(steps=value.steps + 1)
        case Cell():
            name = next(iter(sorted(IDENTITY[type(value)])))
            return dataclasses.replace(value, **{name: changed(getattr(value, name))})
        case tuple():
            return value[:-1]
    raise TypeError(value)


FIELDS = [(kind, name) for kind, names in IDENTITY.items() for name in sorted(names)]


def test_every_cell_class_and_field_is_classified() -> None:
    assert set(subclasses(Cell)) == set(IDENTITY) == set(samples())
    for kind, names in IDENTITY.items():
        fields = {item.name: item for item in dataclasses.fields(kind)}
        runtime = RUNTIME.get(kind, set())
        assert set(fields) == names | runtime, kind
        assert {name for name, item in fields.items() if not item.metadata.get("identity", True)} == runtime


@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=[f"{kind.__name__}.{name}" for kind, name in FIELDS])
def test_an_identity_field_changes_the_id(kind: type[Cell], name: str) -> None:
    cell = samples()[kind]
    other = dataclasses.replace(cell, **{name: changed(getattr(cell, name))})
    assert other.id != cell.id


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in RUNTIME.items() for name in names])
def test_a_runtime_field_changes_neither_id_nor_equality_nor_what_is_shown(kind: type[Cell], name: str) -> None:
    cell = samples()[kind]
    other = dataclasses.replace(cell, **{name: changed(getattr(cell, name))})
    assert (other.id, other, other.params(), hash(other)) == (cell.id, cell, cell.params(), hash(cell))


def test_no_run_setting_is_a_field_of_a_cell() -> None:
    settings = set(RunSettings.model_fields)
    assert settings == {
        "root", "data_dir", "executor", "device", "cpus", "gpus", "gpus_per_trial", "gpus_per_actor", "actors", "pack",
        "address", "arithmetic", "quiet", "checkpoints", "cell_seconds",
    }  # fmt: skip
    for cell in samples().values():
        assert not settings & set(cell.params())
        assert not settings & {item.name for item in dataclasses.fields(cell)}


def test_stage_kind_and_version_are_part_of_the_id(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, cell in samples().items():
        ids = {cell.id}
        for name, value in (("STAGE", "other"), ("KIND", "other"), ("VERSION", 99)):
            with monkeypatch.context() as patch:
                patch.setattr(kind, name, value)
                ids.add(dataclasses.replace(cell).id)
        assert len(ids) == 4, kind


def test_a_new_version_of_a_stage_reaches_what_hangs_on_it_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {kind: cell.id for kind, cell in samples().items()}
    monkeypatch.setattr(ExplainCell, "VERSION", ExplainCell.VERSION + 1)
    after = {kind: cell.id for kind, cell in samples().items()}
    assert {kind for kind in before if before[kind] != after[kind]} == {ExplainCell, ScoreCell}


def test_all_ids_differ_and_are_file_names() -> None:
    ids = [cell.id for cell in samples().values()]
    assert len(set(ids)) == len(ids)
    assert all(len(name) == 16 and set(name) <= set("0123456789abcdef") for name in ids)


def test_golden_ids() -> None:
    assert {kind.__name__: cell.id for kind, cell in samples().items()} == GOLDEN


def test_ids_do_not_depend_on_the_process_its_hash_seed_or_its_folder(tmp_path: Any) -> None:
    code = (
        "from geco_ray.experiments.cfe.cells import BaseCell, VariantCell;"
        "print(VariantCell(BaseCell('breast_cancer', 'd' * 8, 2026, 'paper'), 'seed', 0).id)"
    )
    for seed in ("0", "12345"):
        environment = {"PYTHONHASHSEED": seed, "PATH": os.environ["PATH"], "LC_ALL": "C"}
        run = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == GOLDEN["VariantCell"]


def test_ids_do_not_depend_on_the_order_of_arguments_or_options() -> None:
    one = TrainCell("a", "b", "c", "d", "e", Steps(steps=3, scale=2.0), None, "paper")
    two = TrainCell(
        protocol="paper", seed=None, paradigm_options=Steps(scale=2.0, steps=3), paradigm="e", encoder_fingerprint="d",
        encoder="c", data="b", dataset="a",
    )  # fmt: skip
    assert one.id == two.id


def test_a_default_and_the_same_value_given_are_one_cell() -> None:
    base = BaseCell("a", "b", 0, "paper")
    given = (Steps(), Steps(steps=20), Steps(scale=1.0))
    assert len({CounterfactualCell(base, "m", options, "paper").id for options in given}) == 1


def test_missing_and_zero_and_empty_differ() -> None:
    train = samples()[TrainCell]
    assert len({dataclasses.replace(train, seed=seed).id for seed in (None, 0, 1)}) == 3  # type: ignore[arg-type]
    assert (
        dataclasses.replace(train, dataset="ab", data="c").id != dataclasses.replace(train, dataset="a", data="bc").id
    )


def test_a_cell_survives_pickling() -> None:
    for cell in samples().values():
        for again in (pickle.loads(pickle.dumps(cell)), dataclasses.replace(cell)):
            assert (again.id, again, again.params()) == (cell.id, cell, cell.params())


def test_params_are_json_and_hold_the_single_upstream_cells_values() -> None:
    validity = samples()[ValidityCell]
    params = json.loads(json.dumps(validity.params(), allow_nan=False))
    assert params == {
        "dataset": "breast_cancer", "data": "d" * 8, "base_seed": 2026, "seeding": "paper", "kind": "",
        "method": "wachter", "method_options": {"steps": 20, "scale": 1.0}, "protocol": "paper", "family": "seed",
    }  # fmt: skip
    assert [cell.stage for cell in validity.upstream()] == ["counterfactuals", "models", "models"]


def test_titles_name_what_tells_neighbours_apart() -> None:
    assert samples()[ExplainCell].title == "explain demo · enc · bert_c · 0 · paper · integrated_gradients · 100"
    base = BaseCell("bc", "d", 2026, "paper")
    assert VariantCell(base, "seed", 1).title != VariantCell(base, "seed", 2).title
