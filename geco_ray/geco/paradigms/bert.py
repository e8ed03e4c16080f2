"""What the BERT paradigms share: each declares the parts of the model that it trains and that it redraws.

They are named after BERT, as in the paper, and train an encoder of any family.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from geco_ray.geco.model_parts import ModelPart, check_parts, parts_of
from geco_ray.geco.paradigms.base import PARADIGMS, Paradigm, TrainingSetup
from geco_ray.geco.protocol import Protocol, resolve_protocol
from geco_ray.registry import Options

if TYPE_CHECKING:
    import torch

    from geco_ray.geco.classifiers import Classifier
    from geco_ray.geco.encoders import EncoderSource
    from geco_ray.geco.fitting import Part, Recipe
    from geco_ray.geco.pretrained.classifier import EncoderClassifier
    from geco_ray.geco.tokens import TokenRow
    from geco_ray.geco.trained import TrainedClassifier
    from geco_ray.geco.training import Trainee


class BertOptions(Options):
    """Options of every BERT paradigm. ``dropout`` is the rate wherever it acts; it is off in the paper's protocol.

    ``precision``: of the passes of training steps, where ``bfloat16`` is torch's autocast. Weights, Adam's moments and
    all evaluation stay float32, so that what is measured and stored is what will be explained.
    """

    epochs: int = Field(20, ge=1)
    batch_size: int = Field(32, ge=1)
    learning_rate: float = Field(1e-2, gt=0)
    epsilon: float = Field(1e-8, gt=0)
    dropout: float = Field(0.1, ge=0, lt=1)
    precision: Literal["float32", "bfloat16"] = "float32"


class BertParadigm(Paradigm):
    """A paradigm on a pretrained encoder. What is stored follows from the names: the trained and the redrawn parts."""

    depends_on: ClassVar[Literal["encoder", "tokenizer"]] = "encoder"

    trained: ClassVar[tuple[str, ...]]
    """Parts whose parameters are trained, or ``("all",)``."""

    redrawn: ClassVar[tuple[ModelPart, ...]]
    """Parts that start from random weights instead of the encoder's."""

    def __init_subclass__(cls) -> None:
        """Check the names where they are declared, long before anything runs.

        Raises:
            UserError: see :func:`check_parts`.
        """
        super().__init_subclass__()
        check_parts(f"paradigm {cls.__name__}", cls.trained, cls.redrawn)
        cls.shares_work = cls.only_head()

    @classmethod
    def only_head(cls) -> bool:
        """Whether nothing below the head changes, so that its input is the same in all epochs and for all seeds."""
        return {*cls.trained, *cls.redrawn} == {"head"}

    @classmethod
    def trained_under(cls, protocol: Protocol) -> tuple[str, ...]:
        """The parts that are trained under a protocol; override it where they differ."""
        return cls.trained

    def check(self, setup: TrainingSetup, options: Options) -> None:
        from geco_ray.geco.encoders import encoder_family, encoder_positions
        from geco_ray.geco.tokens import require_positions

        family = encoder_family(setup.source)
        for named in (self.trained_under(setup.protocol), self.redrawn):
            parts_of(setup.source.name, family.parts, named)
        require_positions(setup.tokens, encoder_positions(setup.source), setup.source.name)

    def train(self, setup: TrainingSetup, options: Options, seeds: Sequence[int | None]) -> Iterator[TrainedClassifier]:
        from geco_ray.geco.pretrained.classifier import EncoderClassifier
        from geco_ray.geco.pretrained.loading import load_backbone
        from geco_ray.geco.training import GENERAL_SEED, train_one

        assert isinstance(options, BertOptions)
        name = next(entry.name for entry in PARADIGMS.entries() if entry.target is type(self))
        self.check(setup, options)
        backbone = load_backbone(setup.source)
        backbone.model.to(setup.device)
        parts: dict[str, Part] | None = None
        for seed in seeds:
            number = 0 if seed is None else seed
            classifier = EncoderClassifier(
                backbone if self.only_head() else copy.deepcopy(backbone),
                len(setup.tokens.task.labels),
                seed=GENERAL_SEED + number,
                trained=self.trained_under(setup.protocol),
                redrawn=self.redrawn,
            ).to(setup.device)
            parts = parts or (_feature_parts(classifier, setup) if self.only_head() else _token_parts(setup))
            trainee = _trainee(setup, name, options, number, classifier, parts)
            yield train_one(setup, name, options, number, trainee)

    def rebuild(
        self, state: Mapping[str, torch.Tensor], options: Options, protocol: str, source: EncoderSource
    ) -> Classifier:
        from geco_ray.geco.classifiers import load_trained_state
        from geco_ray.geco.pretrained.classifier import EncoderClassifier
        from geco_ray.geco.pretrained.loading import load_backbone

        classifier = EncoderClassifier(
            load_backbone(source),
            _labels(state),
            seed=0,
            trained=self.trained_under(resolve_protocol(protocol)),
            redrawn=self.redrawn,
        )
        load_trained_state(classifier, state)
        return classifier.requires_grad_(False)


def _labels(state: Mapping[str, torch.Tensor]) -> int:
    """The number of classes, from the head's last weight."""
    names = ("head.out_proj.weight", "head.weight")
    return len(next(state[name] for name in names if name in state))


def head_inputs(
    classifier: EncoderClassifier, rows: Sequence[TokenRow], device: torch.device, *, token_budget: int = 8192
) -> torch.Tensor:
    """What the head is given of each row, (n, d), in batches of equal length."""
    import torch

    from geco_ray.geco.tokens import equal_length_batches

    result = torch.empty(len(rows), classifier.backbone.width, device=device)
    with torch.no_grad():
        for batch in equal_length_batches([len(row) for row in rows], token_budget):
            ids = torch.stack([torch.from_numpy(rows[index].ids) for index in batch]).to(device)
            result[torch.tensor(batch, device=device)] = classifier.features(ids, None)
    return result


def _feature_parts(classifier: EncoderClassifier, setup: TrainingSetup) -> dict[str, Part]:
    """The head's inputs, computed once."""
    tokens = setup.tokens
    train = head_inputs(classifier, tokens.train, setup.device)
    test = head_inputs(classifier, tokens.test, setup.device)
    return _parts(setup, (train,), (test,))


def _token_parts(setup: TrainingSetup) -> dict[str, Part]:
    """Ids and mask, padded to the longest sentence of the split; a batch is cut to its own in each step."""
    import torch

    from geco_ray.geco.tokens import pad_rows

    tokens = setup.tokens
    train, test = (
        tuple(torch.from_numpy(array).to(setup.device) for array in pad_rows(rows, tokens.tokenizer.pad_id))
        for rows in (tokens.train, tokens.test)
    )
    return _parts(setup, train, test)


def _parts(setup: TrainingSetup, train: tuple[torch.Tensor, ...], test: tuple[torch.Tensor, ...]) -> dict[str, Part]:
    """The three parts from the inputs of both splits."""
    import torch

    from geco_ray.geco.fitting import Part
    from geco_ray.geco.training import validation_split

    task = setup.tokens.task
    whole, tested = (
        Part(inputs, torch.tensor([row.target for row in rows], device=setup.device))
        for inputs, rows in ((train, task.train), (test, task.test))
    )
    inside, held_out = (
        torch.from_numpy(part).to(setup.device) for part in validation_split(task.train, setup.protocol)
    )
    return {"train": Part(*whole.take(inside)), "validation": Part(*whole.take(held_out)), "test": tested}


def _trainee(
    setup: TrainingSetup,
    name: str,
    options: BertOptions,
    seed: int,
    classifier: EncoderClassifier,
    parts: Mapping[str, Part],
) -> Trainee:
    from geco_ray.geco.dropout import Dropout
    from geco_ray.geco.training import Trainee
    from geco_ray.seeds import derive_seed

    rate = options.dropout if setup.protocol.dropout == "trained_parts" else 0.0
    cached = len(parts["train"].inputs) == 1
    # Masks of features are small and drawn on the CPU; those of hidden states are drawn where they are used.
    device = "cpu" if cached else str(setup.device)
    drop = Dropout(rate, derive_seed("geco", "dropout", name, seed), device)

    def from_features(inputs: tuple[torch.Tensor, ...], training: bool) -> torch.Tensor:
        (features,) = inputs
        with _autocast(options, setup.device, training):
            return classifier.training_head(features, drop if training else None).float()

    def from_tokens(inputs: tuple[torch.Tensor, ...], training: bool) -> torch.Tensor:
        ids, mask = inputs
        longest = int(mask.sum(1).max())
        with _autocast(options, setup.device, training):
            cut = ids[:, :longest], mask[:, :longest]
            return classifier.training_logits(*cut, drop if training else None).float()

    forward = from_features if cached else from_tokens
    return Trainee(
        classifier,
        classifier.trained_parameters(),
        parts,
        forward,
        _recipe(options, setup.protocol),
        generators=(drop.generator,),
        keeps_checkpoints=not cached,
    )


def _autocast(options: BertOptions, device: torch.device, training: bool) -> AbstractContextManager[None]:
    """The precision of a pass: that of the options in training, float32 elsewhere."""
    import torch

    autocast: AbstractContextManager[None] = torch.autocast(
        device.type, torch.bfloat16, enabled=training and options.precision == "bfloat16"
    )
    return autocast


def _recipe(options: BertOptions, protocol: Protocol) -> Recipe:
    from geco_ray.geco.fitting import Recipe

    return Recipe(
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        weight_decay=0.0,
        epsilon=options.epsilon,
        accumulate=False,
        clip_before_step=protocol.clipping == "before_step",
        mean_over_rows=protocol.best_epoch == "mean_over_rows",
    )
