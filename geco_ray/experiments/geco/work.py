"""GECOBench's stages: train a classifier, explain its test sentences on an actor, score the explanations."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geco_ray.cells import Cell
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
    partial_work,
    require_unchanged,
    serve_stage,
)
from geco_ray.experiments.geco.cells import ExplainCell, ScoreCell, TrainCell
from geco_ray.experiments.geco.expand import tokenizer_name
from geco_ray.experiments.geco.labels import labelled
from geco_ray.ledger import Ledger

if TYPE_CHECKING:
    from geco_ray.geco.encoders import EncoderSource
    from geco_ray.geco.fitting import EpochRecord, Keeper
    from geco_ray.geco.task import Task
    from geco_ray.geco.tokens import TaskTokens

SENTENCE_SAMPLE_SEED = 0  # one sample for all models and methods, so that they are compared on the same sentences


def check_inputs(cells: Sequence[Cell], data_dir: Path | None) -> None:
    """Open every data set and look for every encoder that the cells need, and at what it sees of the data.

    Raises:
        UserError: one is missing or wrong, or an encoder cannot tell the forms of a data set apart.

    Warns:
        GecoRayWarning: what an encoder does not see of a data set as its truth has it.
    """
    from geco_ray.geco.data.dataset import load_task, sample_sentences
    from geco_ray.geco.encoders import check_encoder, resolve_encoder

    trains = []
    for cell in cells:
        explained = cell.explained if isinstance(cell, ScoreCell) else cell
        model = explained.model if isinstance(explained, ExplainCell) else explained
        if isinstance(model, TrainCell):
            trains.append(model)
    tasks = {name: load_task(name, data_dir) for name in dict.fromkeys(cell.dataset for cell in trains)}
    for cell in cells:
        if isinstance(cell, ExplainCell) and cell.sentences is not None:
            sample_sentences(tasks[cell.model.dataset], cell.sentences, SENTENCE_SAMPLE_SEED)
    for name in dict.fromkeys(cell.encoder_source for cell in trains):
        check_encoder(resolve_encoder(name))
    _check_encoders(trains, tasks)


def _check_encoders(trains: Sequence[TrainCell], tasks: Mapping[str, Task]) -> None:
    """What each encoder sees of each data set that it is planned with."""
    from geco_ray.geco.audit.encoder_audit import audit_encoder, require_forms_apart, require_limits
    from geco_ray.geco.encoders import load_tokenizer, resolve_encoder
    from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
    from geco_ray.geco.protocol import resolve_protocol
    from geco_ray.geco.tokens import tokenize_task

    for dataset, name in dict.fromkeys((cell.dataset, cell.encoder_source) for cell in trains):
        source = resolve_encoder(name)
        tokens = tokenize_task(tasks[dataset], load_tokenizer(source))
        audit = audit_encoder(tokens.task, tokens.tokenizer, name)
        require_forms_apart(audit)
        cells = [cell for cell in trains if (cell.dataset, cell.encoder_source) == (dataset, name)]
        if any(PARADIGMS.get(cell.paradigm).target.depends_on == "encoder" for cell in cells):
            require_limits(tokens, source)
        for cell in {replace(cell, seed=None).id: cell for cell in cells}.values():
            setup = TrainingSetup(tokens, source, resolve_protocol(cell.protocol), resolve_device("cpu"))
            PARADIGMS.get(cell.paradigm).target().check(setup, cell.paradigm_options)
        for line in audit.lines():
            warnings.warn(line, GecoRayWarning, stacklevel=1)


@lru_cache(maxsize=2)
def _tokens(dataset: str, data_dir: Path | None, fingerprint: str, encoder: str) -> TaskTokens:
    """The task that the cell was planned with, tokenised once per process and reused from cell to cell.

    Raises:
        UserError: a data file has changed since.
    """
    from geco_ray.geco.data.dataset import load_task
    from geco_ray.geco.encoders import load_tokenizer, resolve_encoder
    from geco_ray.geco.tokens import tokenize_task

    task = load_task(dataset, data_dir)
    require_unchanged("data set", dataset, task.fingerprint, fingerprint)
    return tokenize_task(task, load_tokenizer(resolve_encoder(encoder)))


def _source(cell: TrainCell) -> EncoderSource:
    """The encoder that the cell was planned with.

    Raises:
        UserError: its files have changed since, or differ on this node.
    """
    from geco_ray.geco.encoders import resolve_encoder
    from geco_ray.geco.paradigms.base import PARADIGMS

    source = resolve_encoder(cell.encoder_source)
    found = PARADIGMS.get(cell.paradigm).target.fingerprint(source)
    require_unchanged("encoder", cell.encoder_source, found, cell.encoder_fingerprint)
    return source


@computation("train")
def train(cells: Sequence[TrainCell], ledger: Ledger, context: WorkerContext) -> Iterator[tuple[Cell, Result]]:
    """Train a pack's classifiers; a cell's table is its history, its blob the trained weights."""
    from geco_ray.geco.audit.encoder_audit import audit_encoder
    from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
    from geco_ray.geco.protocol import resolve_protocol
    from geco_ray.geco.training import model_facts

    first = cells[0]  # a pack differs in its seeds only
    turns = _Turns(cells, context)
    setup = TrainingSetup(
        tokens=_tokens(first.dataset, context.data_dir, first.data, first.encoder_source),
        source=_source(first),
        protocol=resolve_protocol(first.protocol),
        device=resolve_device(context.device),
        keeper=_keeper(cells, ledger, context),
        on_epoch=turns.tell,
    )
    audit = audit_encoder(setup.tokens.task, setup.tokens.tokenizer, first.encoder_source)
    info: dict[str, Any] = {"encoder": first.encoder_source, "encoder_audit": audit.record()}
    paradigm = component_of(PARADIGMS, first.paradigm, first.paradigm_code)
    info |= {"titles": {"paradigm": paradigm.title}, "profiles": {"paradigm": paradigm.profile.record()}}
    info |= origin_facts(paradigm)
    trained = paradigm.target().train(setup, first.paradigm_options, [cell.seed for cell in cells])
    for cell, classifier in zip(turns, trained, strict=True):
        said = {"model": model_facts(classifier, paradigm.target)}
        yield cell, Result(classifier.history_table(), classifier.to_bytes(), info | said)


class _Turns:
    """The cells of a pack one after another, each from when its training begins, so that an epoch can name its cell."""

    def __init__(self, cells: Sequence[TrainCell], context: WorkerContext) -> None:
        self._cells, self._context, self._current = cells, context, cells[0]

    def __iter__(self) -> Iterator[TrainCell]:
        for cell in self._cells:
            self._current = cell
            yield cell

    def tell(self, record: EpochRecord) -> None:
        """Pass an epoch on to whoever wants to know."""
        if self._context.on_epoch is not None:
            self._context.on_epoch(self._current, asdict(record))


def _keeper(cells: Sequence[TrainCell], ledger: Ledger, context: WorkerContext) -> Keeper | None:
    """Keeps the checkpoint of a training; of a pack, whose trainings take seconds, none is kept."""
    from geco_ray.geco.checkpoints import ByteKeeper

    partial = partial_work(cells[0], ledger, context) if len(cells) == 1 else None
    return None if partial is None else ByteKeeper(partial.load, partial.store)


class _ExplainedModel:
    """A classifier on its device, with its task's tokens."""

    def __init__(self, cell: TrainCell, ledger: Ledger, context: WorkerContext) -> None:
        from geco_ray.geco.explain import Explainer
        from geco_ray.geco.training import load_trained

        device = resolve_device(context.device)
        self._tokens = _tokens(cell.dataset, context.data_dir, cell.data, cell.encoder_source)
        source = _source(cell)
        self._tokenizer = tokenizer_name(source.tokenizer_fingerprint)
        trained = load_trained(ledger.blob(ledger.require(cell)), source, device)
        self._explainer = Explainer(trained, self._tokens, protocol=cell.protocol, device=device)

    def answer(self, cell: ExplainCell) -> Result:
        """All attributions of one method for the cell's sentences."""
        from geco_ray.geco.attribution.base import ATTRIBUTIONS

        test = self._tokens.task.test
        rows = list(range(len(test)))
        if cell.sentences is not None:
            from geco_ray.geco.data.dataset import sample_sentences

            chosen = sample_sentences(self._tokens.task, cell.sentences, SENTENCE_SAMPLE_SEED)
            rows = [row for row in rows if test[row].sentence_idx in chosen]
        method = component_of(ATTRIBUTIONS, cell.method, cell.method_code, cell.method_options)
        table = self._explainer.explain(rows, cell.method_options.registered_as or cell.method, cell.method_options)
        info: dict[str, Any] = {"titles": {"method": method.title}, "profiles": {"method": method.profile.record()}}
        info |= origin_facts(method)
        note = (table.schema.metadata or {}).get(b"note")
        table = labelled(table, cell, self._tokenizer)
        if self._explainer.memory_halvings:
            info["memory_halvings"] = self._explainer.memory_halvings
        return Result(table, info=info | ({"note": note.decode()} if note else {}))


def _load_model(cell: ExplainCell, ledger: Ledger, context: WorkerContext) -> LoadedModel:
    return _ExplainedModel(cell.model, ledger, context)


serve_stage("explain", ServedStage(key=lambda cell: cell.model.id, load=_load_model))


@computation("score")
def score(cells: Sequence[ScoreCell], ledger: Ledger, context: WorkerContext) -> Iterator[tuple[Cell, Result]]:
    """Metrics of each explained row."""
    from geco_ray.geco.explain import score as score_table

    for cell in cells:
        explanations = ledger.table(ledger.require(cell.explained))
        scores = score_table(explanations, protocol=cell.explained.model.protocol)
        tokenizer = str(explanations["tokenizer"][0]) if explanations.num_rows else ""
        yield cell, Result(labelled(scores, cell.explained, tokenizer))
