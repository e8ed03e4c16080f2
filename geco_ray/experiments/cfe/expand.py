"""From the axes of robust counterfactuals to cells: models, the base model's counterfactuals, their validity."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import product
from typing import Any

from geco_ray.cells import Cell
from geco_ray.errors import UserError
from geco_ray.experiments.cfe.axes import CfeAxes
from geco_ray.experiments.cfe.cells import (
    BaseCell,
    CounterfactualCell,
    ProofCell,
    ProvedCell,
    ValidityCell,
    VariantCell,
)
from geco_ray.plan.axes import ComponentChoice
from geco_ray.plan.resolver import Resolver
from geco_ray.registry import Entry, Options

REQUESTS_PER_PROOF_BLOCK = 10


def expand_axes(axes: CfeAxes, resolver: Resolver) -> Iterator[Cell]:
    """All cells of the axes, each base model before its variants and counterfactuals, both before validity."""
    from geco_ray.cfe.changes.base import FAMILIES
    from geco_ray.cfe.data.datasets import dataset_fingerprint, dataset_names
    from geco_ray.cfe.methods.base import METHODS

    resolver.check_names("datasets", axes.datasets, "data set", dataset_names(resolver.data_dir))
    choices = [ComponentChoice(name=name) for name in axes.families]
    families = [entry for entry, _ in resolver.components("families", choices, FAMILIES)]
    methods = resolver.components("methods", axes.methods, METHODS)
    _check_variants(axes, resolver)
    data = {name: dataset_fingerprint(name, resolver.data_dir) for name in axes.datasets}
    for dataset, base_seed, seeding in product(axes.datasets, axes.base_seeds, axes.seeding):
        base = BaseCell(dataset, data[dataset], base_seed, seeding)
        yield base
        bank = {
            family.name: tuple(
                VariantCell(base, family.name, number, family_code=family.code) for number in axes.variants
            )
            for family in families
        }
        for variants in bank.values():
            yield from variants
        for (method, options), protocol in product(methods, axes.protocol):
            tuned = _tuned(method.name, options, protocol, base, resolver)
            counterfactuals = _counterfactuals(base, method, tuned, protocol)
            if isinstance(counterfactuals, ProvedCell):
                yield from counterfactuals.blocks
            yield counterfactuals
            for family, variants in bank.items():
                yield ValidityCell(counterfactuals, family, variants)


def _tuned(method: str, options: Options, protocol: str, base: BaseCell, resolver: Resolver) -> Options:
    """What is left to tuning takes its frozen value here, so that the value is part of the cell's identity."""
    from geco_ray.cfe.tuning import GRIDS, resolve_tuned

    if method not in GRIDS:
        return options
    values = resolve_tuned(method, options, protocol, base.dataset, base.seeding, resolver.data_dir)
    return options.model_copy(update=values)


def _counterfactuals(base: BaseCell, method: Entry[Any], options: Options, protocol: str) -> CounterfactualCell:
    """A proof can take as long as all other methods together, so it comes in blocks, each a cell of its own."""
    from geco_ray.cfe.factuals import MAX_FACTUALS

    if getattr(options, "proof", "none") == "none":
        return CounterfactualCell(base, method.name, options, protocol, method_code=method.code)
    starts = range(0, MAX_FACTUALS, REQUESTS_PER_PROOF_BLOCK)
    ends = [min(first + REQUESTS_PER_PROOF_BLOCK, MAX_FACTUALS) for first in starts]
    blocks = tuple(
        ProofCell(base, method.name, options, protocol, first, end, method_code=method.code)
        for first, end in zip(starts, ends, strict=True)
    )
    return ProvedCell(base, method.name, options, protocol, blocks, method_code=method.code)


def _check_variants(axes: CfeAxes, resolver: Resolver) -> None:
    from geco_ray.cfe.changes.base import VARIANTS_PER_FAMILY

    beyond = [number for number in axes.variants if number >= VARIANTS_PER_FAMILY]
    if beyond:
        raise UserError(
            f"variant {beyond[0]} does not exist",
            where=resolver.place("variants", axes.variants.index(beyond[0])),
            expected=f"numbers from 0 to {VARIANTS_PER_FAMILY - 1}, or a count up to {VARIANTS_PER_FAMILY}",
        )


def pack_key(cell: Cell) -> Hashable:
    """The base models of a data set train as one stack, and so do the variants of one family and base model.

    Settings of one method (registered by one module) for one base model come together: they share what they can.
    """
    from geco_ray.cfe.methods.base import METHODS

    if isinstance(cell, BaseCell):
        return cell.dataset, cell.seeding
    if isinstance(cell, VariantCell):
        return cell.base.id, cell.family
    if isinstance(cell, CounterfactualCell) and not isinstance(cell, ProvedCell):
        return cell.base.id, cell.protocol, METHODS.get(cell.method_options.registered_as or cell.method).module
    return cell.id
