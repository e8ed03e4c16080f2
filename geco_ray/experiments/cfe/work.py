"""Robust counterfactuals' stages: base and changed models, counterfactuals, and their validity under change."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geco_ray.cells import BaseCell, Cell, CounterfactualCell, ProofCell, ProvedCell, ValidityCell, VariantCell
from geco_ray.device import resolve_device
from geco_ray.experiments.base import HeldStage, Result, Subject, Workplace, computation, held_stage, refuse_changed
from geco_ray.ledger import Ledger

if TYPE_CHECKING:
    import pyarrow as pa
    import torch

    from geco_ray.cfe.base_model import BaseModel
    from geco_ray.cfe.data.datasets import Dataset
    from geco_ray.cfe.mlp import Mlp
    from geco_ray.cfe.model_stack import StackedModels


def check_cfe_inputs(cells: Sequence[Cell], data_dir: Path | None) -> None:
    """Open every data set that the cells need.

    Raises:
        UserError: one is missing or wrong.
    """
    bases: list[BaseCell] = []
    for cell in cells:
        if isinstance(cell, BaseCell):
            bases.append(cell)
        elif isinstance(cell, VariantCell | CounterfactualCell | ProofCell):
            bases.append(cell.base)
        elif isinstance(cell, ValidityCell):
            bases.append(cell.counterfactuals.base)
    for name, data in dict.fromkeys((base.dataset, base.data) for base in bases):
        _dataset(name, data_dir, data)


@lru_cache(maxsize=4)
def _dataset(name: str, data_dir: Path | None, fingerprint: str) -> Dataset:
    """The data that the cell was planned with, once per process.

    Raises:
        UserError: the file or its card has changed since.
    """
    from geco_ray.cfe.data.datasets import load_dataset

    dataset = load_dataset(name, data_dir)
    refuse_changed("data set", name, dataset.fingerprint, fingerprint)
    return dataset


def _model_row(model: Mlp, base: Mlp, dataset: Dataset, facts: dict[str, Any]) -> pa.Table:
    """The one row of a model's cell: what it is, its descriptors on the test part, its weights."""
    from dataclasses import asdict

    import pyarrow as pa

    from geco_ray.cfe.descriptors import describe

    row = facts | asdict(describe(base, model, dataset.test)) | {"weights": model.to_bytes()}
    table = pa.Table.from_pylist([row])
    for name in ("linf_distance", "l2_distance"):  # null for another architecture, and still a number's column
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.float64()))
    return table


@computation("models", "base", whole=True)
def train_bases(cells: Sequence[BaseCell], ledger: Ledger, place: Workplace) -> Iterator[tuple[Cell, Result]]:
    """Train the base models of one data set as one stack."""
    from geco_ray.cfe.base_model import train_bases as train
    from geco_ray.cfe.seeding import BaseKey
    from geco_ray.cfe.training import Pool

    dataset = _dataset(cells[0].dataset, place.data_dir, cells[0].data)
    keys = [BaseKey(cell.dataset, cell.base_seed, cell.seeding) for cell in cells]
    for cell, base in zip(cells, train(keys, Pool.of(dataset), resolve_device(place.device)), strict=True):
        facts = {
            "change_id": None,
            "family": None,
            "level": None,
            "seed": cell.base_seed,
            "draw": None,
            "epochs": base.epochs,
            "best_epoch": base.best_epoch,
            "adverse_test_rows": int((~base.model.favourable(dataset.test.x)).sum()),
        }
        yield cell, Result(_model_row(base.model, base.model, dataset, facts))


def _stored(cell: BaseCell | VariantCell, ledger: Ledger) -> Mlp:
    from geco_ray.cfe.mlp import Mlp

    return Mlp.from_bytes(ledger.table(ledger.require(cell))["weights"][0].as_py())


def _base(cell: BaseCell, ledger: Ledger) -> BaseModel:
    from geco_ray.cfe.base_model import BaseModel
    from geco_ray.cfe.seeding import BaseKey

    return BaseModel(BaseKey(cell.dataset, cell.base_seed, cell.seeding), _stored(cell, ledger))


@computation("models", "variant", whole=True)
def make_variants(cells: Sequence[VariantCell], ledger: Ledger, place: Workplace) -> Iterator[tuple[Cell, Result]]:
    """Make variants of one family and base model; those that are trained are trained as one stack."""
    from geco_ray.cfe.changes.base import realise, variant_specs
    from geco_ray.cfe.training import Pool

    first = cells[0]
    dataset, base = _dataset(first.base.dataset, place.data_dir, first.base.data), _base(first.base, ledger)
    specs = variant_specs(first.family, base.key, [cell.variant for cell in cells])
    made = realise(specs, base, Pool.of(dataset), resolve_device(place.device))
    for cell, variant in zip(cells, made, strict=True):
        spec = variant.spec
        facts = {
            "change_id": spec.change_id,
            "family": spec.family,
            "level": spec.level,
            "seed": spec.seed,
            "draw": spec.draw,
            "epochs": variant.epochs,
            "best_epoch": variant.best_epoch,
        }
        yield cell, Result(_model_row(variant.model, base.model, dataset, facts))


@computation("counterfactuals")
@computation("counterfactuals", "proof")
def generate(
    cells: Sequence[CounterfactualCell | ProofCell], ledger: Ledger, place: Workplace
) -> Iterator[tuple[Cell, Result]]:
    """One method's counterfactuals. It sees the base model and the data, and has no way to a changed model.

    How long each batch took is a measurement and goes to the record; the table holds what can be repeated.
    """
    from geco_ray.cfe.factuals import select_factuals
    from geco_ray.cfe.generation import generate as ask
    from geco_ray.cfe.methods.base import METHODS, GenerationTask

    for cell in cells:
        dataset = _dataset(cell.base.dataset, place.data_dir, cell.base.data)
        base = _base(cell.base, ledger)
        factuals = select_factuals(base, dataset.test)
        asked = slice(None)
        if isinstance(cell, ProofCell):
            asked = slice(cell.first, cell.end)
        task = GenerationTask.of(dataset, base, cell.protocol, str(resolve_device(place.device)))
        started = time.perf_counter()
        prepared = METHODS.get(cell.method).target(task, cell.method_options)
        set_up_seconds = time.perf_counter() - started
        table = ask(prepared, task, factuals.x[asked], factuals.ids[asked].tolist(), factuals.row_ids[asked].tolist())
        info = {
            "set_up": {key: _json(value) for key, value in prepared.set_up.items()},
            "set_up_seconds": round(set_up_seconds, 6),
            "batches": _batches(table),
            "eligible_factuals": factuals.eligible,
        }
        yield cell, Result(table.drop_columns(["seconds", "batch"]), info=info)


@computation("counterfactuals", "proved")
def put_together(cells: Sequence[ProvedCell], ledger: Ledger, place: Workplace) -> Iterator[tuple[Cell, Result]]:
    """The blocks of a method that proves its answers, as one table.

    Raises:
        ValueError: a request is missing or there twice.
    """
    import pyarrow as pa

    from geco_ray.cfe.factuals import MAX_FACTUALS

    for cell in cells:
        records = [ledger.require(block) for block in cell.blocks]
        tables = [ledger.table(record) for record in records if record.rows]
        info = {key: value for key, value in records[0].info.items() if key in ("set_up", "eligible_factuals")}
        info["set_up_seconds"] = records[0].info["set_up_seconds"]
        info["batches"] = [batch for record in records for batch in record.info["batches"]]
        whole = pa.concat_tables(tables, promote_options="permissive") if tables else ledger.table(records[0])
        ids = whole["factual_id"].to_pylist()
        if ids != list(range(len(ids))) or len(ids) != min(MAX_FACTUALS, info["eligible_factuals"]):
            raise ValueError(f"the blocks hold requests {ids}, {info['eligible_factuals']} rows are eligible")
        yield cell, Result(whole, info=info)


def _batches(table: pa.Table) -> list[dict[str, float]]:
    """Requests and wall seconds of each batch: the requests of a batch run together and have no times of their own."""
    sizes, seconds, found, first = table["batch"].to_pylist(), table["seconds"].to_pylist(), [], 0
    while first < len(sizes):
        found.append({"requests": sizes[first], "seconds": round(seconds[first] * sizes[first], 6)})
        first += sizes[first]
    return found


def _json(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


class _Bank:
    """The changed models of one base model, loaded family by family, stacked on the device and kept."""

    def __init__(self, ledger: Ledger, device: torch.device) -> None:
        self._ledger, self._device = ledger, device
        self._stacks: dict[tuple[str, ...], StackedModels] = {}

    def _family(self, cell: ValidityCell) -> StackedModels:
        from geco_ray.cfe.model_stack import StackedModels

        key = tuple(variant.id for variant in cell.variants)
        if key not in self._stacks:
            models = [_stored(variant, self._ledger) for variant in cell.variants]
            self._stacks[key] = StackedModels(models, self._device)
        return self._stacks[key]

    def answer(self, cell: ValidityCell) -> Result:
        """Each counterfactual against each variant of the cell's family."""
        import numpy as np
        import pyarrow as pa

        models = self._family(cell)
        made = self._ledger.table(self._ledger.require(cell.counterfactuals))
        valid = [state == "found" for state in made["status"].to_pylist()]
        adverse: list[list[bool]] = []
        survived: list[list[bool] | None] = [None] * len(valid)
        if valid:
            adverse = (~models.favourable(np.array(made["factual"].to_pylist()))).tolist()
        rows = [number for number, ok in enumerate(valid) if ok]
        if rows:
            points = np.array([made["counterfactual"][number].as_py() for number in rows])
            for number, answer in zip(rows, models.favourable(points).tolist(), strict=True):
                survived[number] = answer
        return Result(
            pa.table(
                {
                    "factual_id": made["factual_id"],
                    "status": made["status"],
                    "base_valid": pa.array(valid, pa.bool_()),
                    "variant_valid": pa.array(survived, pa.list_(pa.bool_())),
                    "factual_still_adverse": pa.array(adverse, pa.list_(pa.bool_())),
                }
            )
        )


def _load_bank(cell: ValidityCell, ledger: Ledger, place: Workplace) -> Subject:
    return _Bank(ledger, resolve_device(place.device))


held_stage("validity", HeldStage(key=lambda cell: cell.counterfactuals.base.id, load=_load_bank))
