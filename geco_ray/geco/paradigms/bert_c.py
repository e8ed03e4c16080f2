"""BERT-C: a pretrained encoder, frozen with its pooler, under a new linear head (GECOBench, classifiers)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from geco_ray.geco.paradigms.base import PARADIGMS, Paradigm, TrainingSetup
from geco_ray.registry import Options

if TYPE_CHECKING:
    import torch

    from geco_ray.geco.classifiers import BertClassifier, Classifier
    from geco_ray.geco.encoders import EncoderSource
    from geco_ray.geco.fitting import Part
    from geco_ray.geco.tokens import TokenRow
    from geco_ray.geco.trained import TrainedClassifier
    from geco_ray.geco.training import Trainee


class BertCOptions(Options):
    """Defaults of the paper; dropout is that of the encoder's configuration there and off in the paper's protocol."""

    epochs: int = Field(20, ge=1)
    batch_size: int = Field(32, ge=1)
    learning_rate: float = Field(1e-2, gt=0)
    epsilon: float = Field(1e-8, gt=0)
    dropout: float = Field(0.1, ge=0, lt=1)


@PARADIGMS.register("bert_c", title="BERT-C", options=BertCOptions)
class BertC(Paradigm):
    """See the module. The pooler's outputs are computed once for all epochs and seeds: the encoder never changes."""

    depends_on: ClassVar[Literal["encoder", "tokenizer"]] = "encoder"
    shares_work: ClassVar[bool] = True

    def train(self, setup: TrainingSetup, options: Options, seeds: Sequence[int | None]) -> Iterator[TrainedClassifier]:
        from geco_ray.geco.encoders import load_encoder
        from geco_ray.geco.training import train_one

        assert isinstance(options, BertCOptions)
        encoder = load_encoder(setup.source).to(setup.device)
        parts: dict[str, Part] | None = None
        for seed in seeds:
            number = 0 if seed is None else seed
            classifier = _new_classifier(encoder, len(setup.tokens.task.labels), number).to(setup.device)
            parts = parts or _feature_parts(classifier, setup)
            yield train_one(setup, "bert_c", options, number, _trainee(setup, options, number, classifier, parts))

    def rebuild(
        self, state: Mapping[str, torch.Tensor], options: Options, protocol: str, source: EncoderSource
    ) -> Classifier:
        from geco_ray.geco.classifiers import load_trained_state
        from geco_ray.geco.encoders import load_encoder

        classifier = _new_classifier(load_encoder(source), len(state["head.bias"]), 0)
        load_trained_state(classifier, state)
        return classifier.requires_grad_(False)


def pooled_features(
    classifier: BertClassifier, rows: Sequence[TokenRow], device: torch.device, *, token_budget: int = 8192
) -> torch.Tensor:
    """The pooler's output of each row, (n, d), in batches of equal length."""
    import torch

    from geco_ray.geco.tokens import equal_length_batches

    result = torch.empty(len(rows), classifier.head.in_features, device=device)
    with torch.no_grad():
        for batch in equal_length_batches([len(row) for row in rows], token_budget):
            ids = torch.stack([torch.from_numpy(rows[index].ids) for index in batch]).to(device)
            result[torch.tensor(batch, device=device)] = classifier.pooled(ids, None)
    return result


def _new_classifier(encoder: object, labels: int, seed: int) -> BertClassifier:
    from geco_ray.geco.classifiers import BertClassifier
    from geco_ray.geco.training import GENERAL_SEED

    return BertClassifier(encoder, labels, seed=GENERAL_SEED + seed)


def _feature_parts(classifier: BertClassifier, setup: TrainingSetup) -> dict[str, Part]:
    import torch

    from geco_ray.geco.fitting import Part
    from geco_ray.geco.training import validation_split

    tokens, task = setup.tokens, setup.tokens.task
    features = {
        split: pooled_features(classifier, rows, setup.device)
        for split, rows in (("train", tokens.train), ("test", tokens.test))
    }
    targets = {
        split: torch.tensor([row.target for row in rows], device=setup.device)
        for split, rows in (("train", task.train), ("test", task.test))
    }
    inside, held_out = (
        torch.from_numpy(part).to(setup.device) for part in validation_split(task.train, setup.protocol)
    )
    return {
        "train": Part((features["train"][inside],), targets["train"][inside]),
        "validation": Part((features["train"][held_out],), targets["train"][held_out]),
        "test": Part((features["test"],), targets["test"]),
    }


def _trainee(
    setup: TrainingSetup, options: BertCOptions, seed: int, classifier: BertClassifier, parts: Mapping[str, Part]
) -> Trainee:
    import torch

    from geco_ray.geco.fitting import Recipe
    from geco_ray.geco.training import Trainee
    from geco_ray.seeds import torch_stream

    protocol = setup.protocol
    recipe = Recipe(
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        weight_decay=0.0,
        epsilon=options.epsilon,
        accumulate=False,
        clip_before_step=protocol.clipping == "before_step",
        mean_over_rows=protocol.best_epoch == "mean_over_rows",
    )
    rate = options.dropout if protocol.dropout == "trained_parts" else 0.0
    drops = torch_stream("geco", "dropout", "bert_c", seed)

    def forward(inputs: tuple[torch.Tensor, ...], training: bool) -> torch.Tensor:
        (features,) = inputs
        if training and rate > 0:
            kept = torch.rand(features.shape, generator=drops) >= rate
            features = features * kept.to(features) / (1 - rate)
        logits: torch.Tensor = classifier.head(features)
        return logits

    return Trainee(classifier, list(classifier.head.parameters()), parts, forward, recipe)
