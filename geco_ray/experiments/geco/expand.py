"""From GECOBench's axes to its cells: a model per combination, explained and scored by every method."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from geco_ray.cells import Cell
from geco_ray.experiments.geco.axes import GecoAxes
from geco_ray.experiments.geco.cells import ExplainCell, ScoreCell, TrainCell
from geco_ray.plan.resolver import Resolver

if TYPE_CHECKING:
    from geco_ray.geco.encoders import EncoderSource


def expand_axes(axes: GecoAxes, resolver: Resolver) -> Iterator[Cell]:
    """All cells of the axes, each model before its explanations, each explanation before its score."""
    from geco_ray.geco.attribution.base import ATTRIBUTIONS
    from geco_ray.geco.data.dataset import task_fingerprint, task_names
    from geco_ray.geco.encoders import resolve_encoder
    from geco_ray.geco.paradigms.base import PARADIGMS

    resolver.check_names("datasets", axes.datasets, "data set", task_names(resolver.data_dir))
    paradigms = resolver.components("paradigms", axes.paradigms, PARADIGMS)
    methods = resolver.components("methods", axes.methods, ATTRIBUTIONS)
    encoders = resolver.each("encoders", axes.encoders, resolve_encoder)
    data = {name: task_fingerprint(name, resolver.data_dir) for name in axes.datasets}
    for dataset, encoder, (paradigm, options), protocol in product(axes.datasets, encoders, paradigms, axes.protocol):
        uses_encoder = paradigm.target.depends_on == "encoder"
        fingerprint = paradigm.target.fingerprint(encoder)
        for seed in axes.seeds if paradigm.target.repeated else (None,):
            model = TrainCell(
                dataset=dataset,
                data=data[dataset],
                # A paradigm that uses the tokenizer alone gives one model for all encoders that share it.
                encoder=_encoder_name(encoder) if uses_encoder else f"tokenizer {tokenizer_name(fingerprint)}",
                encoder_fingerprint=fingerprint,
                paradigm=paradigm.name,
                paradigm_options=options,
                seed=seed,
                protocol=protocol,
                encoder_source=encoder.location if _is_users_folder(encoder) else encoder.name,
                paradigm_code=paradigm.code,
            )
            yield model
            for method, method_options in methods:
                explained = ExplainCell(model, method.name, method_options, axes.sentences, method_code=method.code)
                yield explained
                yield ScoreCell(explained)


def trains_small(cell: TrainCell) -> bool:
    """Whether the cell's paradigm trains a network so small that ``--device auto`` leaves it on a CPU."""
    from geco_ray.experiments.base import component_of
    from geco_ray.geco.paradigms.base import PARADIGMS

    return component_of(PARADIGMS, cell.paradigm, cell.paradigm_code).target.small


def tokenizer_name(fingerprint: str) -> str:
    """What a tokenizer is called: the beginning of its fingerprint."""
    return fingerprint[:8]


def _encoder_name(encoder: EncoderSource) -> str:
    """The name that identifies an encoder: a local folder counts by its own name, not by where it lies."""
    return Path(encoder.location).name if _is_users_folder(encoder) else encoder.name


def _is_users_folder(encoder: EncoderSource) -> bool:
    from geco_ray.geco.encoders import PACKAGED

    return encoder.kind == "folder" and encoder.name not in PACKAGED


def pack_key(cell: Cell) -> Hashable:
    """The seeds of a paradigm whose encoder is frozen share its features; every other cell is computed on its own."""
    from geco_ray.geco.paradigms.base import PARADIGMS

    if isinstance(cell, TrainCell) and PARADIGMS.get(cell.paradigm).target.shares_work:
        return replace(cell, seed=None).id
    return cell.id
