"""The bank of one base model: its changed models, made together, described, and ready to be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.changes.base import Variant, family_names, make_variants, variant_specs
from geco_ray.cfe.data.datasets import Dataset
from geco_ray.cfe.descriptors import Descriptors, severity
from geco_ray.cfe.model_stack import StackedModels
from geco_ray.cfe.model_table import model_table
from geco_ray.cfe.training import Pool

if TYPE_CHECKING:
    import pyarrow as pa
    import torch


@dataclass(frozen=True, eq=False)
class Bank:
    """A base model and its changed models; ``catalog`` has a row for each of them, in their order.

    Columns of the catalog: those of :func:`geco_ray.cfe.model_table.model_table` but the weights, then
    ``base_model_id``, ``variant`` (number in the family), ``quality_pass``, ``severity_percentile`` and ``severity``.
    """

    base: BaseModel
    variants: tuple[Variant, ...]
    catalog: pa.Table

    def stack(self) -> StackedModels:
        """The changed models to be asked: ``.favourable(points)`` gives bool (points, variants) in catalog order."""
        return StackedModels([variant.model for variant in self.variants])


def build_bank(
    base: BaseModel, dataset: Dataset, families: Sequence[str] | None = None, device: torch.device | str = "cpu"
) -> Bank:
    """Make all variants of the given families (all eight by default) of a base model."""
    names = family_names() if families is None else families
    specs = [spec for name in names for spec in variant_specs(name, base.key)]
    variants = make_variants(specs, base, Pool.of(dataset), device)
    return Bank(base, tuple(variants), _catalog(base, variants, dataset))


def _catalog(base: BaseModel, variants: Sequence[Variant], dataset: Dataset) -> pa.Table:
    import pyarrow as pa

    table = model_table(base, variants, dataset.test).drop_columns(["weights"])
    names = Descriptors.__dataclass_fields__
    described = [Descriptors(**{name: row[name] for name in names}) for row in table.to_pylist()]
    strata = severity(described)
    columns: dict[str, list[Any]] = {
        "base_model_id": [base.key.base_model_id] * len(variants),
        "variant": [variant.spec.variant for variant in variants],
        "quality_pass": [one.quality_pass for one in described],
        "severity_percentile": [share for share, _ in strata],
        "severity": [stratum for _, stratum in strata],
    }
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return table
