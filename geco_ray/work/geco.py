"""GECOBench's stages: train a classifier, explain its test sentences on a holder, score the explanations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from geco_ray.cells import Cell, ExplainCell, ScoreCell, TrainCell
from geco_ray.device import resolve_device
from geco_ray.ledger import Ledger
from geco_ray.work.base import HeldStage, Result, Subject, Workplace, computation, held_stage

if TYPE_CHECKING:
    from geco_ray.geco.tokens import TaskTokens

SENTENCE_SAMPLE_SEED = 0  # one sample for all models and methods, so that they are compared on the same sentences


def check_geco_inputs(cells: Sequence[Cell], data_dir: Path | None) -> None:
    """Open every data set and look for every encoder that the cells need.

    Raises:
        UserError: one is missing or wrong.
    """
    from geco_ray.geco.dataset import load_task, sample_sentences
    from geco_ray.geco.encoders import check_encoder, resolve_encoder

    models = {cell.model if isinstance(cell, ExplainCell) else cell for cell in cells}
    models |= {cell.explained.model for cell in cells if isinstance(cell, ScoreCell)}
    trains = [cell for cell in models if isinstance(cell, TrainCell)]
    tasks = {name: load_task(name, data_dir) for name in dict.fromkeys(cell.dataset for cell in trains)}
    for cell in cells:
        if isinstance(cell, ExplainCell) and cell.sentences is not None:
            sample_sentences(tasks[cell.model.dataset], cell.sentences, SENTENCE_SAMPLE_SEED)
    for name in dict.fromkeys(cell.encoder_source for cell in trains):
        check_encoder(resolve_encoder(name))


@lru_cache(maxsize=2)
def _tokens(dataset: str, data_dir: Path | None, encoder: str) -> TaskTokens:
    """A task, tokenised once per process; trials and holders reuse it from cell to cell."""
    from geco_ray.geco.dataset import load_task
    from geco_ray.geco.encoders import load_tokenizer, resolve_encoder
    from geco_ray.geco.tokens import tokenize_task

    return tokenize_task(load_task(dataset, data_dir), load_tokenizer(resolve_encoder(encoder)))


@computation("train")
def train(cells: Sequence[TrainCell], ledger: Ledger, place: Workplace) -> Iterator[tuple[Cell, Result]]:
    """Train each cell's classifier; the table is its history, the blob its trained weights."""
    from geco_ray.geco.encoders import resolve_encoder
    from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
    from geco_ray.geco.protocol import resolve_protocol

    for cell in cells:
        setup = TrainingSetup(
            tokens=_tokens(cell.dataset, place.data_dir, cell.encoder_source),
            source=resolve_encoder(cell.encoder_source),
            protocol=resolve_protocol(cell.protocol),
            device=resolve_device(place.device),
        )
        paradigm = PARADIGMS.get(cell.paradigm).target()
        (trained,) = paradigm.train(setup, cell.paradigm_options, [cell.seed])
        yield cell, Result(trained.history_table(), trained.to_bytes(), {"encoder": cell.encoder_source})


class _ExplainedModel:
    """A classifier on its device, with its task's tokens."""

    def __init__(self, cell: TrainCell, ledger: Ledger, place: Workplace) -> None:
        from geco_ray.geco.encoders import resolve_encoder
        from geco_ray.geco.training import TrainedClassifier

        record = ledger.require(cell)
        self._device = resolve_device(place.device)
        self._tokens = _tokens(cell.dataset, place.data_dir, cell.encoder_source)
        self._model = TrainedClassifier.from_bytes(
            ledger.blob(record), resolve_encoder(cell.encoder_source), self._device
        )

    def answer(self, cell: ExplainCell) -> Result:
        """All attributions of one method for the cell's sentences."""
        from geco_ray.geco.dataset import sample_sentences
        from geco_ray.geco.explain import explain

        rows = None
        if cell.sentences is not None:
            chosen = sample_sentences(self._tokens.task, cell.sentences, SENTENCE_SAMPLE_SEED)
            rows = [number for number, row in enumerate(self._tokens.task.test) if row.sentence_idx in chosen]
        return Result(
            explain(self._model, self._tokens, cell.method, cell.method_options, rows=rows, device=self._device)
        )


def _load_model(cell: ExplainCell, ledger: Ledger, place: Workplace) -> Subject:
    return _ExplainedModel(cell.model, ledger, place)


held_stage("explain", HeldStage(key=lambda cell: cell.model.id, load=_load_model))


@computation("score")
def score(cells: Sequence[ScoreCell], ledger: Ledger, place: Workplace) -> Iterator[tuple[Cell, Result]]:
    """Metrics of each explained row."""
    from geco_ray.geco.explain import score as score_table

    for cell in cells:
        yield cell, Result(score_table(ledger.table(ledger.require(cell.explained))))
