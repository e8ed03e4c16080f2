"""A task's sentences and a classifier for others: words and pieces as JSON lines, BERT in Hugging Face's own format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geco_ray.exchange.files import write_json, write_lines
from geco_ray.files.atomic import write_whole
from geco_ray.geco.trained import model_digest

if TYPE_CHECKING:
    from geco_ray.geco.encoders import EncoderSource
    from geco_ray.geco.pretrained.classifier import EncoderClassifier
    from geco_ray.geco.task import Task
    from geco_ray.geco.tokens import TaskTokens
    from geco_ray.geco.trained import TrainedClassifier

SCHEMA = "geco_ray.export.attributions/1"


def export_sentences(task: Task, path: Path, *, truth: bool = True) -> None:
    """Write the test split, one sentence a line: row, source sentence, words, target, and the truth unless withheld."""
    write_lines(path, _sentences(task, truth))


def _sentences(task: Task, truth: bool) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(task.test):
        shown = {"row": number, "sentence_idx": row.sentence_idx, "words": list(row.words), "target": row.target}
        yield shown | ({"truth": list(row.truth)} if truth else {})


def export_classifier(trained: TrainedClassifier, tokens: TaskTokens, source: EncoderSource, folder: Path) -> str:
    """Write one classifier's folder; the id by which a submission names it.

    ``card.json``: schema, id, how it was trained, labels. ``pieces.jsonl``: per row of the test split the ids that the
    classifier sees and the word of each, -1 for special tokens. A BERT is written as Hugging Face's
    ``BertForSequenceClassification`` with its tokenizer, another classifier as ``trained.safetensors``.
    """
    from geco_ray.geco.pretrained.classifier import EncoderClassifier

    folder.mkdir(parents=True, exist_ok=True)
    model = model_digest(trained.module, trained.depends_on)
    module = trained.module
    bert = module if isinstance(module, EncoderClassifier) and module.encoder.config.model_type == "bert" else None  # type: ignore[union-attr]
    card = {
        "schema": SCHEMA, "model": model, "dataset": trained.dataset, "data": trained.task_fingerprint,
        "paradigm": trained.paradigm, "options": trained.options.model_dump(mode="json"), "seed": trained.seed,
        "protocol": trained.protocol, "encoder": source.name, "labels": list(trained.labels),
        "test_accuracy": trained.accuracies.test,
        "format": "transformers BertForSequenceClassification" if bert else "trained.safetensors",
    }  # fmt: skip
    write_json(folder / "card.json", card)
    pieces = ({"ids": row.ids.tolist(), "words": row.words.tolist()} for row in tokens.laid_out(module.layout).test)
    write_lines(folder / "pieces.jsonl", ({"row": number, **row} for number, row in enumerate(pieces)))
    if bert is not None:
        _save_bert(bert, trained.labels, source, folder)
    else:
        write_whole(folder / "trained.safetensors", trained.to_bytes())
    return model


def _save_bert(classifier: EncoderClassifier, labels: tuple[str, ...], source: EncoderSource, folder: Path) -> None:
    import copy

    from transformers import AutoTokenizer, BertForSequenceClassification

    from geco_ray.geco.encoders import locate_encoder

    config: Any = copy.deepcopy(classifier.encoder.config)
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: number for number, label in enumerate(labels)}
    model = BertForSequenceClassification(config)
    model.bert.load_state_dict(classifier.encoder.state_dict())
    model.classifier.load_state_dict(classifier.head.state_dict())
    model.eval().save_pretrained(str(folder))
    AutoTokenizer.from_pretrained(str(locate_encoder(source)), local_files_only=True).save_pretrained(str(folder))
