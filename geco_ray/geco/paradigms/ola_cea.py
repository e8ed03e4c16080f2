"""OLA-CEA: a classifier of one attention layer, all of it trained from scratch (GECOBench, classifiers)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from geco_ray.geco.paradigms.base import PARADIGMS, Paradigm, TrainingSetup
from geco_ray.geco.protocol import resolve_protocol
from geco_ray.registry import Options, Profile

if TYPE_CHECKING:
    import torch

    from geco_ray.geco.classifiers import Classifier, OlaClassifier
    from geco_ray.geco.encoders import EncoderSource
    from geco_ray.geco.fitting import Part
    from geco_ray.geco.tokens import TaskTokens, TokenRow
    from geco_ray.geco.trained import TrainedClassifier
    from geco_ray.geco.training import Trainee


class OlaOptions(Options):
    """Defaults of the paper. ``weight_decay`` None is the protocol's: 1e-3 corrected, 0.1 paper."""

    epochs: int = Field(200, ge=1)
    batch_size: int = Field(64, ge=1)
    learning_rate: float = Field(1e-2, gt=0)
    weight_decay: float | None = Field(None, ge=0)
    epsilon: float = Field(1e-5, gt=0)
    dimension: int = Field(64, ge=1)


@PARADIGMS.register(
    "ola_cea", title="OLA-CEA", options=OlaOptions, profile=Profile(order=6, colour="#C24E00", marker="v", aims=True)
)
class OlaCea(Paradigm):
    """See the module. Depends on the tokenizer alone, not on any encoder's weights."""

    depends_on: ClassVar[Literal["encoder", "tokenizer"]] = "tokenizer"
    # A GPU gains little here, and PyTorch's backward of embeddings was found to race on it at this size (PR 187687).
    small = True
    trained = ("all",)
    redrawn = ("all",)

    def train(self, setup: TrainingSetup, options: Options, seeds: Sequence[int | None]) -> Iterator[TrainedClassifier]:
        from geco_ray.geco.training import train_one

        assert isinstance(options, OlaOptions)
        for seed in seeds:
            number = 0 if seed is None else seed
            yield train_one(setup, "ola_cea", options, number, _trainee(setup, options, number))

    def rebuild(
        self, state: Mapping[str, torch.Tensor], options: Options, protocol: str, source: EncoderSource
    ) -> Classifier:
        from geco_ray.geco.classifiers import OlaClassifier, load_trained_state
        from geco_ray.geco.encoders import encoder_family

        assert isinstance(options, OlaOptions)
        vocabulary = state["vocabulary"].numpy()
        classifier = OlaClassifier(
            vocabulary,
            int(vocabulary[-1]) + 1,
            options.dimension,
            len(state["output.bias"]),
            mask_keys=resolve_protocol(protocol).ola_mask == "keys",
            seed=0,
            class_position=encoder_family(source).class_position,
        )
        load_trained_state(classifier, state)
        return classifier


def _trainee(setup: TrainingSetup, options: OlaOptions, seed: int) -> Trainee:
    from geco_ray.geco.classifiers import OlaClassifier
    from geco_ray.geco.fitting import Recipe
    from geco_ray.geco.training import GENERAL_SEED, Trainee

    tokens, protocol = setup.tokens, setup.protocol
    classifier = OlaClassifier(
        tokens.used_ids,
        tokens.tokenizer.vocabulary_size,
        options.dimension,
        len(tokens.task.labels),
        mask_keys=protocol.ola_mask == "keys",
        seed=GENERAL_SEED + seed,
        class_position=tokens.tokenizer.layout.class_position,
    ).to(setup.device)
    recipe = Recipe(
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        weight_decay=protocol.ola_weight_decay if options.weight_decay is None else options.weight_decay,
        epsilon=options.epsilon,
        accumulate=protocol.ola_gradient == "accumulated",
        clip_before_step=protocol.clipping == "before_step",
        mean_over_rows=protocol.best_epoch == "mean_over_rows",
    )

    def forward(inputs: tuple[torch.Tensor, ...], training: bool) -> torch.Tensor:
        rows, mask = inputs
        return classifier.logits_from_words(classifier.word_vectors_of_rows(rows), mask)

    return Trainee(classifier, list(classifier.parameters()), _parts(classifier, setup), forward, recipe)


def _parts(classifier: OlaClassifier, setup: TrainingSetup) -> dict[str, Part]:
    from geco_ray.geco.training import validation_split

    tokens, task = setup.tokens, setup.tokens.task
    inside, held_out = validation_split(task.train, setup.protocol)
    return {
        "train": _part(classifier, tokens, [tokens.train[i] for i in inside], [task.train[i].target for i in inside]),
        "validation": _part(
            classifier, tokens, [tokens.train[i] for i in held_out], [task.train[i].target for i in held_out]
        ),
        "test": _part(classifier, tokens, tokens.test, [row.target for row in task.test]),
    }


def _part(classifier: OlaClassifier, tokens: TaskTokens, rows: Sequence[TokenRow], targets: Sequence[int]) -> Part:
    """Every part is padded to its own longest sentence, which matters where padding is attended."""
    import torch

    from geco_ray.geco.fitting import Part
    from geco_ray.geco.tokens import pad_rows

    ids, mask = pad_rows(rows, tokens.tokenizer.pad_id)
    device = classifier.table.device
    return Part(
        (classifier.rows_of(torch.from_numpy(ids).to(device)), torch.from_numpy(mask).to(device)),
        torch.tensor(targets, device=device),
    )
