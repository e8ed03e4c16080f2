"""What a paradigm is: how a classifier is initialised, which of its parts are trained, and on what it depends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from geco_ray.geco.protocol import Protocol
from geco_ray.registry import Options, Registry

if TYPE_CHECKING:
    import torch

    from geco_ray.geco.classifiers import Classifier
    from geco_ray.geco.encoders import EncoderSource
    from geco_ray.geco.fitting import EpochRecord, Keeper
    from geco_ray.geco.tokens import TaskTokens
    from geco_ray.geco.trained import TrainedClassifier


@dataclass(frozen=True, eq=False)
class TrainingSetup:
    """What the repetitions of one paradigm share.

    Attributes:
        tokens: the task. source: the encoder. protocol: the switches. device: where to train.
        keeper: keeps checkpoints of a training that takes minutes; for one repetition, since it holds one.
        on_epoch: told of each epoch that ends.
    """

    tokens: TaskTokens
    source: EncoderSource
    protocol: Protocol
    device: torch.device
    keeper: Keeper | None = None
    on_epoch: Callable[[EpochRecord], None] | None = None


class Paradigm(ABC):
    """A training paradigm. Subclass it, and register the class with its options in :data:`PARADIGMS`."""

    depends_on: ClassVar[Literal["encoder", "tokenizer"]]
    """What of the encoder is part of a cell's identity."""

    repeated: ClassVar[bool] = True
    """False when nothing is drawn, so that one run stands for all seeds (its seed is None)."""

    shares_work: ClassVar[bool] = False
    """True when the seeds share what costs most, so that they are better trained together than apart."""

    small: ClassVar[bool] = False
    """True for a network so small that a CPU trains it as fast; ``--device auto`` then leaves it there."""

    is_reference: ClassVar[bool] = False
    """True for a model that is never trained on the task, to which others' mass accuracy is relative."""

    trained: ClassVar[tuple[str, ...] | None] = None
    """Names of the parts that are trained, for tables; ``("all",)`` is the whole model, None is not said."""

    redrawn: ClassVar[tuple[str, ...] | None] = None
    """Names of the parts that start from random weights, likewise."""

    @classmethod
    def trained_under(cls, protocol: Protocol) -> tuple[str, ...] | None:
        """The parts that are trained under a protocol; override it where they differ."""
        return cls.trained

    def check(self, setup: TrainingSetup, options: Options) -> None:
        """Refuse what this paradigm cannot do with a task or an encoder, before anything runs. By default nothing.

        Raises:
            UserError: what, where, and what to do.
        """
        return

    @abstractmethod
    def train(self, setup: TrainingSetup, options: Options, seeds: Sequence[int | None]) -> Iterator[TrainedClassifier]:
        """One trained classifier per repetition, in the order of ``seeds``; what they share is computed once."""

    @abstractmethod
    def rebuild(
        self, state: Mapping[str, torch.Tensor], options: Options, protocol: str, source: EncoderSource
    ) -> Classifier:
        """The classifier whose trained tensors are ``state``."""

    @classmethod
    def fingerprint(cls, source: EncoderSource) -> str:
        """The part of the encoder's identity that the paradigm depends on."""
        return source.fingerprint if cls.depends_on == "encoder" else source.tokenizer_fingerprint


PARADIGMS: Registry[type[Paradigm]] = Registry("paradigm", "geco_ray.geco.paradigms")
