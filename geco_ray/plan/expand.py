"""From a grid to its cells. Pure planning: neither torch nor Ray is imported, and no model is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geco_ray.cells import Cell
from geco_ray.errors import UserError, unknown_name
from geco_ray.experiments.cfe.cells import (
    BaseCell,
    CounterfactualCell,
    ProofCell,
    ProvedCell,
    ValidityCell,
    VariantCell,
)
from geco_ray.experiments.geco.cells import ExplainCell, ScoreCell, TrainCell
from geco_ray.plan.config import CfeAxes, ComponentChoice, GecoAxes, Grid, refuse_twice
from geco_ray.plan.gridfile import GridText, KeyPath
from geco_ray.registry import Entry, OptionError, Options, Registry

if TYPE_CHECKING:
    from geco_ray.geco.encoders import EncoderSource

STAGES = ("train", "explain", "score", "models", "counterfactuals", "validity")
REQUESTS_PER_PROOF_BLOCK = 10
Chosen = tuple[Entry[Any], Options]


def expand(grid: Grid, text: GridText, data_dir: Path | None = None) -> list[Cell]:
    """All cells of a grid, each once, upstream cells before what hangs on them.

    Raises:
        UserError: an unknown data set, encoder, paradigm, method, family or option, with its place; a data file that
            is needed to name the data and is not there.
    """
    cells: list[Cell] = []
    if isinstance(axes := grid.axes("geco"), GecoAxes):
        cells += _expand_geco(axes, text, data_dir)
    if isinstance(axes := grid.axes("cfe"), CfeAxes):
        cells += _expand_cfe(axes, text, data_dir)
    unique: dict[str, Cell] = {}
    for cell in cells:
        unique.setdefault(cell.id, cell)
    return sorted(unique.values(), key=lambda cell: STAGES.index(cell.stage))  # stable: grid order within a stage


def _resolve(
    registry: Registry[Any], choices: Iterable[ComponentChoice], path: KeyPath, text: GridText
) -> list[Chosen]:
    chosen = []
    for number, choice in enumerate(choices):
        entry = registry.get(choice.name, where=_at((*path, number), text))
        try:
            chosen.append((entry, entry.parse_options(choice.options)))
        except OptionError as error:
            raise error.at(_at((*path, number, error.key), text, (*path, error.key))) from None
    refuse_twice(chosen, path, text, lambda pair: pair[0].name)
    return chosen


def _at(path: KeyPath, text: GridText, other: KeyPath | None = None) -> str:
    """File, line and axis of what stands at ``path``, or at ``other`` where an axis of one value is no list."""
    place = text.place(other if other in text.places else path) if other else text.place(path)
    return f"{place}: {'.'.join(map(str, path[:2]))}"


def _known(names: Iterable[str], known: Callable[[], list[str]], kind: str, path: KeyPath, text: GridText) -> None:
    everything = known()
    for number, name in enumerate(names):
        if name not in everything:
            raise unknown_name(kind, name, everything, where=_at((*path, number), text))


def _expand_geco(axes: GecoAxes, text: GridText, data_dir: Path | None) -> Iterator[Cell]:
    from geco_ray.geco.attribution.base import ATTRIBUTIONS
    from geco_ray.geco.data.dataset import task_fingerprint, task_names
    from geco_ray.geco.encoders import resolve_encoder
    from geco_ray.geco.paradigms.base import PARADIGMS

    _known(axes.datasets, lambda: task_names(data_dir), "data set", ("geco", "datasets"), text)
    paradigms = _resolve(PARADIGMS, axes.paradigms, ("geco", "paradigms"), text)
    methods = _resolve(ATTRIBUTIONS, axes.methods, ("geco", "methods"), text)
    encoders = []
    for number, name in enumerate(axes.encoders):
        try:
            encoders.append(resolve_encoder(name))
        except UserError as error:
            raise error.at(_at(("geco", "encoders", number), text)) from None
    data = {name: task_fingerprint(name, data_dir) for name in axes.datasets}
    for dataset, encoder, (paradigm, options), protocol in product(axes.datasets, encoders, paradigms, axes.protocol):
        whole = paradigm.target.depends_on == "encoder"
        fingerprint = paradigm.target.fingerprint(encoder)
        for seed in axes.seeds if paradigm.target.repeated else (None,):
            model = TrainCell(
                dataset=dataset,
                data=data[dataset],
                # A paradigm that uses the tokenizer alone gives one model for all encoders that share it.
                encoder=_encoder_name(encoder) if whole else f"tokenizer {fingerprint[:8]}",
                encoder_fingerprint=fingerprint,
                paradigm=paradigm.name,
                paradigm_options=options,
                seed=seed,
                protocol=protocol,
                encoder_source=encoder.location if _is_users_folder(encoder) else encoder.name,
            )
            yield model
            for method, method_options in methods:
                explained = ExplainCell(model, method.name, method_options, axes.sentences)
                yield explained
                yield ScoreCell(explained)


def _encoder_name(encoder: EncoderSource) -> str:
    """The name that identifies an encoder: a local folder counts by its own name, not by where it lies."""
    return Path(encoder.location).name if _is_users_folder(encoder) else encoder.name


def _is_users_folder(encoder: EncoderSource) -> bool:
    from geco_ray.geco.encoders import PACKAGED

    return encoder.kind == "folder" and encoder.name not in PACKAGED


def _expand_cfe(axes: CfeAxes, text: GridText, data_dir: Path | None) -> Iterator[Cell]:
    from geco_ray.cfe.changes.base import FAMILIES
    from geco_ray.cfe.data.datasets import dataset_fingerprint, dataset_names
    from geco_ray.cfe.methods.base import METHODS

    _known(axes.datasets, lambda: dataset_names(data_dir), "data set", ("cfe", "datasets"), text)
    choices = [ComponentChoice(name=name) for name in axes.families]
    families = [entry.name for entry, _ in _resolve(FAMILIES, choices, ("cfe", "families"), text)]
    methods = _resolve(METHODS, axes.methods, ("cfe", "methods"), text)
    _check_variants(axes, text)
    data = {name: dataset_fingerprint(name, data_dir) for name in axes.datasets}
    for dataset, base_seed, seeding in product(axes.datasets, axes.base_seeds, axes.seeding):
        base = BaseCell(dataset, data[dataset], base_seed, seeding)
        yield base
        bank = {family: tuple(VariantCell(base, family, number) for number in axes.variants) for family in families}
        for variants in bank.values():
            yield from variants
        for (method, options), protocol in product(methods, axes.protocol):
            settled = _tuned(method.name, options, protocol, dataset)
            counterfactuals = _counterfactuals(base, method.name, settled, protocol)
            if isinstance(counterfactuals, ProvedCell):
                yield from counterfactuals.blocks
            yield counterfactuals
            for family, variants in bank.items():
                yield ValidityCell(counterfactuals, family, variants)


def _tuned(method: str, options: Options, protocol: str, dataset: str) -> Options:
    """What is left to tuning takes its frozen value here, so that the value is part of the cell's identity."""
    from geco_ray.cfe.tuning import GRIDS, settled

    if method not in GRIDS:
        return options
    return options.model_copy(update=settled(method, options, protocol, dataset))


def _counterfactuals(base: BaseCell, method: str, options: Options, protocol: str) -> CounterfactualCell:
    """A proof can take as long as all other methods together, so it comes in blocks, each a cell of its own."""
    from geco_ray.cfe.factuals import MAX_FACTUALS

    if getattr(options, "proof", "none") == "none":
        return CounterfactualCell(base, method, options, protocol)
    starts = range(0, MAX_FACTUALS, REQUESTS_PER_PROOF_BLOCK)
    blocks = tuple(
        ProofCell(base, method, options, protocol, first, min(first + REQUESTS_PER_PROOF_BLOCK, MAX_FACTUALS))
        for first in starts
    )
    return ProvedCell(base, method, options, protocol, blocks)


def _check_variants(axes: CfeAxes, text: GridText) -> None:
    from geco_ray.cfe.changes.base import VARIANTS_PER_FAMILY

    beyond = [number for number in axes.variants if number >= VARIANTS_PER_FAMILY]
    if beyond:
        raise UserError(
            f"variant {beyond[0]} does not exist",
            where=_at(("cfe", "variants", axes.variants.index(beyond[0])), text),
            expected=f"numbers from 0 to {VARIANTS_PER_FAMILY - 1}, or a count up to {VARIANTS_PER_FAMILY}",
        )


def packs(cells: Iterable[Cell], size: int) -> list[tuple[Cell, ...]]:
    """Group cells that are computed together: one pack is one trial.

    The base models of a data set train as one stack, and so do up to ``size`` variants of one family and base model;
    the seeds of a paradigm whose encoder is frozen share its features. Every other cell is a pack of its own. Packing
    changes no result.
    """
    from geco_ray.geco.paradigms.base import PARADIGMS

    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        key: tuple[Any, ...]
        if isinstance(cell, TrainCell) and PARADIGMS.get(cell.paradigm).target.shares_work:
            key = (replace(cell, seed=None).id,)
        elif isinstance(cell, BaseCell):
            key = (cell.KIND, cell.dataset, cell.seeding)
        elif isinstance(cell, VariantCell):
            key = (cell.KIND, cell.base.id, cell.family)
        else:
            key = (cell.id,)
        groups.setdefault(key, []).append(cell)
    return [tuple(group[i : i + size]) for group in groups.values() for i in range(0, len(group), size)]
