"""From a grid's finished models to an export, and from a run folder's models to what a submission answers of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from geco_ray.cells import Cell
from geco_ray.errors import UserError
from geco_ray.experiments.base import require_unchanged
from geco_ray.experiments.cfe.cells import BaseCell
from geco_ray.experiments.geco.cells import TrainCell
from geco_ray.ledger import Ledger

if TYPE_CHECKING:
    from geco_ray.cfe.base_model import BaseModel
    from geco_ray.exchange.checking import Coverage
    from geco_ray.geco.task import Task
    from geco_ray.ledger.record import Record
    from geco_ray.submissions import AttributionFile, CounterfactualFile

Model = BaseCell | TrainCell


def models_of(cells: Sequence[Cell]) -> list[Model]:
    """The base models and classifiers of a grid: what an export is made of."""
    return [cell for cell in cells if isinstance(cell, BaseCell | TrainCell)]


def export_models(
    models: Sequence[Model], ledger: Ledger, data_dir: Path | None, to: Path, *, truth: bool
) -> Iterator[Path]:
    """Write a folder for each model below ``to``, and each task's sentences once; yields the folders as they are done.

    Args:
        truth: whether the sentences are written with it.

    Raises:
        UserError: a model is not trained yet, or its data have changed since.
    """
    missing = [cell for cell in models if ledger.get(cell) is None]
    if missing:
        what = f"{len(missing)} of {len(models)} models are not trained yet"
        raise UserError(what, where=ledger.root, remedy="Run the grid first (`geco-ray run`)")
    written: set[str] = set()
    for cell in models:
        if isinstance(cell, BaseCell):
            yield _export_base(cell, ledger, data_dir, to)
            continue
        task = _task(cell.dataset, data_dir, cell.data)
        if task.name not in written:
            from geco_ray.exchange.attributions import export_sentences

            export_sentences(task, to / task.name / "sentences.jsonl", truth=truth)
            written.add(task.name)
        yield _export_classifier(cell, task, ledger, to / task.name)


def _export_base(cell: BaseCell, ledger: Ledger, data_dir: Path | None, to: Path) -> Path:
    from geco_ray.cfe.data.datasets import load_dataset
    from geco_ray.exchange.counterfactuals import export_base_model

    dataset = load_dataset(cell.dataset, data_dir)
    require_unchanged("data set", cell.dataset, dataset.fingerprint, cell.data)
    folder = to / cell.dataset / f"{cell.seeding}-{cell.base_seed}"
    export_base_model(_base_model(ledger.require(cell), ledger), dataset, folder)
    return folder


def _base_model(record: Record, ledger: Ledger) -> BaseModel:
    from geco_ray.cfe.base_model import BaseModel
    from geco_ray.cfe.mlp import Mlp
    from geco_ray.cfe.seeding import BaseKey

    params, weights = record.params, ledger.table(record)["weights"][0].as_py()
    return BaseModel(BaseKey(params["dataset"], params["base_seed"], params["seeding"]), Mlp.from_bytes(weights))


def _task(name: str, data_dir: Path | None, fingerprint: str) -> Task:
    from geco_ray.geco.data.dataset import load_task

    task = load_task(name, data_dir)
    require_unchanged("data set", name, task.fingerprint, fingerprint)
    return task


def _export_classifier(cell: TrainCell, task: Task, ledger: Ledger, to: Path) -> Path:
    import torch

    from geco_ray.exchange.attributions import export_classifier
    from geco_ray.geco.encoders import load_tokenizer, resolve_encoder
    from geco_ray.geco.tokens import tokenize_task
    from geco_ray.geco.training import load_trained

    source = resolve_encoder(cell.encoder_source)
    trained = load_trained(ledger.blob(ledger.require(cell)), source, torch.device("cpu"))
    folder = to / f"{cell.paradigm}-{cell.protocol}-{cell.seed}-{cell.id[:8]}"
    export_classifier(trained, tokenize_task(task, load_tokenizer(source)), source, folder)
    return folder


def check_submission(path: Path, ledger: Ledger, data_dir: Path | None) -> tuple[int, list[Coverage]]:
    """Check a submitted file by itself and against those of its models that the run folder has: its rows, and each.

    Raises:
        UserError: a fault of the file, with its place.
    """
    from geco_ray.submissions import content_id, read_attributions, read_card, read_counterfactuals

    if read_card(path).kind == "counterfactuals":
        points = read_counterfactuals(path, content_id(path))
        return sum(map(len, points.points.values())), answered_requests(points, ledger, data_dir)
    scores = read_attributions(path, content_id(path))
    return sum(map(len, scores.scores.values())), explained_rows(scores, ledger, data_dir)


def answered_requests(file: CounterfactualFile, ledger: Ledger, data_dir: Path | None) -> list[Coverage]:
    """For each base model of a submission that the run folder has: how many of its requests are answered.

    Raises:
        UserError: a data set or request that is not there, or values that do not fit the features.
    """
    from geco_ray.cfe.data.datasets import load_dataset
    from geco_ray.exchange.checking import coverage

    records = {
        (record.params["dataset"], record.params["base_seed"], record.params["seeding"]): record
        for record in ledger.records("models")
        if record.params["kind"] == "base"
    }
    found = []
    for key in file.points:
        dataset = load_dataset(key.dataset, data_dir)
        file.rows(key, dataset.features, dataset.mean, dataset.scale)
        record = records.get((key.dataset, key.base_seed, key.seeding))
        if record is not None and record.params["data"] == dataset.fingerprint:
            found.append(coverage(file, _base_model(record, ledger), dataset))
    return found


def explained_rows(file: AttributionFile, ledger: Ledger, data_dir: Path | None) -> list[Coverage]:
    """For each classifier of a submission that the run folder has: how many rows of its test split have scores.

    Raises:
        UserError: a row that the test split does not have, or another number of scores than words.
    """
    from geco_ray.exchange.checking import sentence_coverage
    from geco_ray.geco.data.dataset import load_task
    from geco_ray.geco.trained import digest_of_bytes

    found = []
    for record in ledger.records("train"):
        model = digest_of_bytes(ledger.blob(record))
        if model in file.scores:
            task = load_task(str(record.params["dataset"]), data_dir)
            found.append(sentence_coverage(file, model, task, str(record.params["paradigm"])))
    return found
