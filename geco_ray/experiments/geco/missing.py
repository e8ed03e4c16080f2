"""What a run of GECOBench's cells would not find or would refuse, without a tokenizer, a model or the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from geco_ray.cells import Cell
from geco_ray.errors import UserError
from geco_ray.experiments.geco.cells import ExplainCell, TrainCell
from geco_ray.experiments.geco.health import health


def find_missing(cells: Sequence[Cell], data_dir: Path | None) -> Iterator[str]:
    """One sentence for each data set and encoder that is missing or refused, and for each sample that is too large."""
    from geco_ray.geco.data.dataset import load_task, sample_sentences

    trains = [cell for cell in cells if isinstance(cell, TrainCell)]
    trains += [cell.model for cell in cells if isinstance(cell, ExplainCell)]
    assets = {asset.name: asset for asset in health(data_dir)}
    for encoder in dict.fromkeys(cell.encoder for cell in trains):
        if encoder in assets and (sentence := assets[encoder].lack()):
            yield sentence
    for dataset in dict.fromkeys(cell.dataset for cell in trains):
        if dataset in assets and (sentence := assets[dataset].lack()):
            yield sentence
            continue
        try:
            task = load_task(dataset, data_dir)
            explained = [cell for cell in cells if isinstance(cell, ExplainCell) and cell.model.dataset == dataset]
            for sentences in {cell.sentences for cell in explained} - {None}:
                sample_sentences(task, int(sentences or 0), 0)
        except UserError as error:
            yield str(error)
