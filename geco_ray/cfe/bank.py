"""The bank of one base model: its changed models, on disk by stacked group and on a device as one computation.

A folder holds one safetensors file for each shape (the models of a shape as stacked tensors), the base model, and
``catalog.parquet``, written last, with a row for each changed model and the SHA-256 of every other file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.changes.base import Variant, VariantSpec, family_names, realise, variant_specs
from geco_ray.cfe.data.datasets import Dataset, check_feature_order
from geco_ray.cfe.descriptors import Descriptors, severity
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.model_table import model_table
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool
from geco_ray.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa
    import torch

    from geco_ray.cfe.model_stack import StackedModels

VERSION = 1
CATALOG = "catalog.parquet"


@dataclass(frozen=True, eq=False)
class Bank:
    """A base model and its changed models in catalog order; ``fingerprint`` and ``features`` are the data set's."""

    base: BaseModel
    variants: tuple[Variant, ...]
    features: tuple[str, ...]
    fingerprint: str
    catalog: pa.Table

    def on(self, device: torch.device | str) -> StackedModels:
        """The changed models on a device: ``.favourable(points)`` gives bool (points, variants) in catalog order."""
        from geco_ray.cfe.model_stack import StackedModels

        return StackedModels([variant.model for variant in self.variants], device)


def build_bank(
    base: BaseModel, dataset: Dataset, families: Sequence[str] | None = None, device: torch.device | str = "cpu"
) -> Bank:
    """Make all variants of the given families (all eight by default) of a base model."""
    names = family_names() if families is None else families
    specs = [spec for name in names for spec in variant_specs(name, base.key)]
    variants = realise(specs, base, Pool.of(dataset), device)
    return Bank(base, tuple(variants), dataset.features, dataset.fingerprint, _catalog(base, variants, dataset))


def save_bank(bank: Bank, folder: Path) -> None:
    """Write a bank; each file is whole or absent, and the catalog comes last."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    files = {"base.safetensors": bank.base.model.to_bytes()}
    for name, members in _groups(bank.variants).items():
        files[name] = _stacked_bytes([bank.variants[index].model for index in members])
    for name, data in files.items():
        _write(folder / name, data)
    key = bank.base.key
    about = {
        "version": VERSION,
        "dataset": key.dataset,
        "base_seed": key.seed,
        "seeding": key.seeding,
        "epochs": bank.base.epochs,
        "best_epoch": bank.base.best_epoch,
        "features": bank.features,
        "fingerprint": bank.fingerprint,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    table = bank.catalog.replace_schema_metadata({"geco_ray.bank": json.dumps(about, sort_keys=True)})
    draft = folder / f".{CATALOG}.{os.getpid()}"
    pq.write_table(table, draft)
    draft.replace(folder / CATALOG)


def load_bank(folder: Path, features: Sequence[str] | None = None) -> Bank:
    """Read a bank and check every file against the catalog's SHA-256.

    Args:
        folder: what :func:`save_bank` wrote.
        features: the data's columns in order, to be compared with the bank's.

    Raises:
        UserError: no bank, another version, a damaged file, or another feature order.
    """
    table, about = _read_catalog(folder / CATALOG)
    if features is not None:
        check_feature_order(about["features"], features, where=str(folder))
    data = {name: _read(folder / name, sha256) for name, sha256 in about["files"].items()}
    key = BaseKey(about["dataset"], about["base_seed"], about["seeding"])
    base = BaseModel(key, Mlp.from_bytes(data.pop("base.safetensors")), about["epochs"], about["best_epoch"])
    models = {name: _unstacked(content) for name, content in data.items()}
    variants = []
    for row in table.to_pylist():
        spec = VariantSpec(**{name: row[name] for name in VariantSpec.__dataclass_fields__})
        model = models[row["group"]][row["position"]]
        variants.append(Variant(spec, model, row["epochs"], row["best_epoch"]))
    return Bank(base, tuple(variants), tuple(about["features"]), about["fingerprint"], table)


def _catalog(base: BaseModel, variants: Sequence[Variant], dataset: Dataset) -> pa.Table:
    import pyarrow as pa

    table = model_table(base, variants, dataset.test).drop_columns(["weights"])
    names = Descriptors.__dataclass_fields__
    described = [Descriptors(**{name: row[name] for name in names}) for row in table.to_pylist()]
    strata = severity(described)
    place = {
        index: (name, position) for name, group in _groups(variants).items() for position, index in enumerate(group)
    }
    columns: dict[str, list[Any]] = {
        "base_model_id": [base.key.base_model_id] * len(variants),
        "quality_pass": [one.quality_pass for one in described],
        "severity_percentile": [share for share, _ in strata],
        "severity": [stratum for _, stratum in strata],
        "group": [place[index][0] for index in range(len(variants))],
        "position": [place[index][1] for index in range(len(variants))],
    }
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return table


def _groups(variants: Sequence[Variant]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for index, variant in enumerate(variants):
        name = "mlp_" + ("_".join(map(str, variant.model.hidden)) or "linear") + ".safetensors"
        groups.setdefault(name, []).append(index)
    return groups


def _stacked_bytes(models: Sequence[Mlp]) -> bytes:
    from safetensors.numpy import save

    tensors = {}
    for layer in range(len(models[0].weights)):
        tensors[f"{layer}.weight"] = np.stack([model.weights[layer] for model in models])
        tensors[f"{layer}.bias"] = np.stack([model.biases[layer] for model in models])
    return bytes(save(tensors))


def _unstacked(data: bytes) -> list[Mlp]:
    from safetensors.numpy import load

    tensors = load(data)
    layers = range(len(tensors) // 2)
    return [
        Mlp(
            tuple(tensors[f"{layer}.weight"][index] for layer in layers),
            tuple(tensors[f"{layer}.bias"][index] for layer in layers),
        )
        for index in range(len(tensors["0.bias"]))
    ]


def _write(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(data)
    draft.replace(path)


def _read(path: Path, sha256: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError("the bank lacks a file", where=str(path), found=str(error), remedy="Build it again.") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise UserError("the file is damaged (SHA-256)", where=str(path), remedy="Remove the bank and build it again.")
    return data


def _read_catalog(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        about = json.loads((table.schema.metadata or {})[b"geco_ray.bank"])
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        raise UserError(f"no bank is here: {error}", where=str(path), remedy="Build it again.") from None
    if about.get("version") != VERSION:
        raise UserError("the bank is of another version", where=str(path), found=about.get("version"))
    return table, about
