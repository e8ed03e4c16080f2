"""Robust counterfactuals' stages: base and changed models, counterfactuals, and their validity under change."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geco_ray.cells import Cell
from geco_ray.cfe.data.remarks import remark_lines
from geco_ray.device import resolve_device
from geco_ray.errors import GecoRayWarning
from geco_ray.experiments.base import (
    LoadedModel,
    Result,
    ServedStage,
    WorkerContext,
    component_of,
    computation,
    origin_facts,
    require_unchanged,
    serve_stage,
)
from geco_ray.experiments.cfe.cells import (
    BaseCell,
    CounterfactualCell,
    ProofCell,
    ProvedCell,
    ValidityCell,
    VariantCell,
)
from geco_ray.experiments.cfe.labels import labelled
from geco_ray.ledger import Ledger

if TYPE_CHECKING:
    import pyarrow as pa
    import torch

    from geco_ray.cfe.base_model import BaseModel
    from geco_ray.cfe.data.datasets import Dataset
    from geco_ray.cfe.mlp import Mlp
    from geco_ray.cfe.model_stack import StackedModels


def check_inputs(cells: Sequence[Cell], data_dir: Path | None) -> None:
    """Open every data set that the cells need.

    Raises:
        UserError: one is missing or wrong.

    Warns:
        GecoRayWarning: values of a table may not mean what they say.
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
        for line in remark_lines(name, _dataset(name, data_dir, data).remarks):
            warnings.warn(line, GecoRayWarning, stacklevel=1)


@lru_cache(maxsize=4)
def _dataset(name: str, data_dir: Path | None, fingerprint: str) -> Dataset:
    """The data that the cell was planned with, once per process.

    Raises:
        UserError: the file or its card has changed since.
    """
    from geco_ray.cfe.data.datasets import load_dataset

    dataset = load_dataset(name, data_dir)
    require_unchanged("data set", name, dataset.fingerprint, fingerprint)
    return dataset


@computation("models", "base", recompute_pack=True)
def train_bases(cells: Sequence[BaseCell], ledger: Ledger, context: WorkerContext) -> Iterator[tuple[Cell, Result]]:
    """Train the base models of one data set as one stack."""
    from geco_ray.cfe.base_model import train_bases as train
    from geco_ray.cfe.data.units import Units
    from geco_ray.cfe.model_table import base_table
    from geco_ray.cfe.seeding import BaseKey
    from geco_ray.cfe.training import Pool

    dataset = _dataset(cells[0].dataset, context.data_dir, cells[0].data)
    keys = [BaseKey(cell.dataset, cell.base_seed, cell.seeding) for cell in cells]
    for cell, base in zip(cells, train(keys, Pool.of(dataset), resolve_device(context.device)), strict=True):
        info = {"titles": {"dataset": dataset.card.title}, "units": Units.of(dataset).record()}
        yield cell, Result(labelled(base_table(base, dataset.test), cell), info=info)


def _stored(cell: BaseCell | VariantCell, ledger: Ledger) -> Mlp:
    from geco_ray.cfe.mlp import Mlp

    return Mlp.from_bytes(ledger.table(ledger.require(cell))["weights"][0].as_py())


def _base(cell: BaseCell, ledger: Ledger) -> BaseModel:
    from geco_ray.cfe.base_model import BaseModel
    from geco_ray.cfe.seeding import BaseKey

    return BaseModel(BaseKey(cell.dataset, cell.base_seed, cell.seeding), _stored(cell, ledger))


@computation("models", "variant", recompute_pack=True)
def make_variants(
    cells: Sequence[VariantCell], ledger: Ledger, context: WorkerContext
) -> Iterator[tuple[Cell, Result]]:
    """Make variants of one family and base model; those that are trained are trained as one stack."""
    from geco_ray.cfe.changes.base import FAMILIES, variant_specs
    from geco_ray.cfe.changes.base import make_variants as make
    from geco_ray.cfe.model_table import model_table
    from geco_ray.cfe.training import Pool

    first = cells[0]
    dataset, base = _dataset(first.base.dataset, context.data_dir, first.base.data), _base(first.base, ledger)
    family = component_of(FAMILIES, first.family, first.family_code)
    specs = variant_specs(first.family, base.key, [cell.variant for cell in cells])
    made = make(specs, base, Pool.of(dataset), resolve_device(context.device))
    for cell, variant in zip(cells, made, strict=True):
        info = {
            "titles": {"dataset": dataset.card.title, "family": family.title},
            "profiles": {"family": family.profile.record()},
            **origin_facts(family),
        }
        yield cell, Result(labelled(model_table(base, [variant], dataset.test), cell), info=info)


@computation("counterfactuals")
@computation("counterfactuals", "proof")
def generate(
    cells: Sequence[CounterfactualCell | ProofCell], ledger: Ledger, context: WorkerContext
) -> Iterator[tuple[Cell, Result]]:
    """One method's counterfactuals. It sees the base model and the data, and has no way to a changed model.

    How long each batch took is a measurement and goes to the record; the table holds what can be repeated.
    """
    from geco_ray.cfe.factuals import select_factuals
    from geco_ray.cfe.generation import generate as ask
    from geco_ray.cfe.methods.base import METHODS, GenerationTask
    from geco_ray.cfe.model_stack import StackedModels

    device = resolve_device(context.device)
    tasks: dict[tuple[str, str], GenerationTask] = {}
    for cell in cells:
        dataset = _dataset(cell.base.dataset, context.data_dir, cell.base.data)
        base = _base(cell.base, ledger)
        factuals = select_factuals(base, dataset.test)
        block = slice(cell.first, cell.end) if isinstance(cell, ProofCell) else slice(None)
        new = GenerationTask.of(dataset, base, cell.protocol, str(device))
        task = tasks.setdefault((cell.base.id, cell.protocol), new)  # one task, so that settings share their work
        entry = component_of(METHODS, cell.method, cell.method_code, cell.method_options)
        started = time.perf_counter()
        prepared = entry.target(task, cell.method_options)
        set_up_seconds = time.perf_counter() - started
        table = ask(prepared, task, factuals.x[block], factuals.ids[block].tolist(), factuals.row_ids[block].tolist())
        info = {
            "set_up": {key: _json(value) for key, value in prepared.set_up.items()},
            "set_up_seconds": round(set_up_seconds, 6),
            "batches": _batches(table),
            "eligible_factuals": factuals.eligible,
            "titles": {"dataset": dataset.card.title, "method": entry.title},
            "profiles": {"method": entry.profile.record()},
            **origin_facts(entry),
            **_tuning(cell, dataset, base, context.data_dir),
            **_disagreements(StackedModels([base.model]), device, table),
        }
        yield cell, Result(labelled(table.drop_columns(["seconds", "batch"]), cell), info=info)


@computation("counterfactuals", "proved")
def assemble_proof_blocks(
    cells: Sequence[ProvedCell], ledger: Ledger, context: WorkerContext
) -> Iterator[tuple[Cell, Result]]:
    """The blocks of a method that proves its answers, as one table.

    Raises:
        ValueError: a request is missing or there twice.
    """
    import pyarrow as pa

    from geco_ray.cfe.factuals import MAX_FACTUALS

    for cell in cells:
        records = [ledger.require(block) for block in cell.blocks]
        tables = [ledger.table(record) for record in records if record.rows]
        kept = ("set_up", "eligible_factuals", "titles", "profiles")
        info = {key: value for key, value in records[0].info.items() if key in kept}
        info["set_up_seconds"] = records[0].info["set_up_seconds"]
        info["batches"] = [batch for record in records for batch in record.info["batches"]]
        table = pa.concat_tables(tables, promote_options="permissive") if tables else ledger.table(records[0])
        ids = table["factual_id"].to_pylist()
        if ids != list(range(len(ids))) or len(ids) != min(MAX_FACTUALS, info["eligible_factuals"]):
            raise ValueError(f"the blocks hold requests {ids}, {info['eligible_factuals']} rows are eligible")
        yield cell, Result(table, info=info)


def _batches(table: pa.Table) -> list[dict[str, float]]:
    """Requests and wall seconds of each batch: the requests of a batch run together and have no times of their own."""
    sizes, seconds, found, first = table["batch"].to_pylist(), table["seconds"].to_pylist(), [], 0
    while first < len(sizes):
        found.append({"requests": sizes[first], "seconds": round(seconds[first] * sizes[first], 6)})
        first += sizes[first]
    return found


def _tuning(
    cell: CounterfactualCell | ProofCell, dataset: Dataset, base: BaseModel, data_dir: Path | None
) -> dict[str, Any]:
    """For the record of a tuned method on the first base model: whether this is the model that was tuned on."""
    from geco_ray.cfe.tuning import GRIDS, compare_tuning, find_entry

    if cell.method not in GRIDS:
        return {}
    entry = find_entry(cell.method, cell.protocol, cell.base.seeding, cell.base.dataset, data_dir)
    used = cell.method_options.model_dump()
    if entry is None or cell.base.base_seed != entry.base_seed or not entry.selected.items() <= used.items():
        return {}
    return {"tuning": compare_tuning(entry, dataset, base)}


def _json(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _disagreements(models: StackedModels, device: torch.device, made: pa.Table) -> dict[str, int]:
    """For the record of work on a GPU: how many answers the GPU's own kernels would have given otherwise."""
    from geco_ray.cfe.rowwise import DevicePass
    from geco_ray.cfe.validity import count_disagreements

    if device.type == "cpu":
        return {}
    return {"device_disagreements": count_disagreements(models, DevicePass(models.models, device), made)}


class _Bank:
    """The changed models of one base model, loaded family by family, stacked and kept."""

    def __init__(self, ledger: Ledger, device: torch.device) -> None:
        self._ledger, self._device = ledger, device
        self._stacks: dict[tuple[str, ...], StackedModels] = {}

    def _family(self, cell: ValidityCell) -> StackedModels:
        from geco_ray.cfe.model_stack import StackedModels

        key = tuple(variant.id for variant in cell.variants)
        if key not in self._stacks:
            models = [_stored(variant, self._ledger) for variant in cell.variants]
            self._stacks[key] = StackedModels(models)
        return self._stacks[key]

    def answer(self, cell: ValidityCell) -> Result:
        """Each counterfactual against each variant of the cell's family."""
        from geco_ray.cfe.validity import validity_table

        models, made = self._family(cell), self._ledger.table(self._ledger.require(cell.counterfactuals))
        return Result(labelled(validity_table(models, made), cell), info=_disagreements(models, self._device, made))


def _load_bank(cell: ValidityCell, ledger: Ledger, context: WorkerContext) -> LoadedModel:
    return _Bank(ledger, resolve_device(context.device))


serve_stage("validity", ServedStage(key=lambda cell: cell.counterfactuals.base.id, load=_load_bank))
