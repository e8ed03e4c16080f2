"""What a classifier has to know of an encoder's family. Importing this file imports no torch.

Two nouns. The *token layout* says which special tokens stand around a sentence and at which token its class is read.
The *backbone* is the library's model, taken apart: word embedding, named parts, state of a token, head. All padding is
on the right, under a mask, whatever side the library pads on: positions count from the first token, or are relative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from geco_ray.geco.model_parts import ModelPart
from geco_ray.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor, nn

Drop = Callable[["Tensor"], "Tensor"]
"""Dropout of hidden states."""


class Backbone(ABC):
    """A pretrained model of one family; ``model`` is never copied. Register a subclass under its ``model_type``.

    Shapes: word vectors (n, L, e); embedded and states (n, L, d); ``mask`` (n, L) bool, True at tokens, or None when
    nothing is padded.
    """

    model_class: ClassVar[str]
    """The library's class of the bare encoder."""

    masked_class: ClassVar[str] = ""
    """The library's class with a language-modeling head; empty where there is none that fills in one token."""

    masked_key: ClassVar[str] = ""
    """How the name of a weight of that head begins in the weight file."""

    next_token: ClassVar[bool] = False
    """That head scores the next token of a text, not a token within it."""

    parts: ClassVar[tuple[ModelPart, ...]] = ("embeddings", "encoder", "head")
    """The parts that the family has."""

    prefix: ClassVar[tuple[str, ...]] = ("cls",)
    suffix: ClassVar[tuple[str, ...]] = ("sep",)
    """Special tokens before and after a sentence, by name."""

    class_position: ClassVar[int] = 0
    """The token at which the class is read: 0 is the first, -1 the last of each sentence."""

    space_before_words: ClassVar[bool] = False
    """The vocabulary tells the beginning of a word by a blank before it, so each word is tokenised with one."""

    special: ClassVar[tuple[str, ...]] = ("cls", "sep", "pad", "mask", "unk")
    """Special tokens that the tokenizer must have."""

    load_arguments: ClassVar[Mapping[str, Any]] = {}
    """Arguments of the library's class when the bare encoder is loaded."""

    def __init__(self, model: nn.Module) -> None:
        self.model: Any = model

    @staticmethod
    def longest(config: Mapping[str, Any]) -> int | None:
        """The most tokens of a sentence by the encoder's ``config.json``; None where positions have no end."""
        return int(config.get("max_position_embeddings", 512))

    @property
    def width(self) -> int:
        """d, the size of a state."""
        return int(self.model.config.hidden_size)

    @property
    def bytes_per_token(self) -> int:
        """Rough memory of one token in a forward and backward pass."""
        config = self.model.config
        names = ("intermediate_size", "hidden_dim", "d_inner", "n_inner")
        inner = next((size for name in names if (size := getattr(config, name, None))), 4 * self.width)
        return 4 * int(config.num_hidden_layers) * (12 * self.width + 3 * int(inner))

    def word_vectors(self, ids: Tensor) -> Tensor:
        """The word embeddings of ``ids``."""
        vectors: Tensor = self.model.get_input_embeddings()(ids)
        return vectors

    @abstractmethod
    def modules(self, part: ModelPart) -> tuple[nn.Module, ...]:
        """The modules of a part other than the head."""

    def dropping(self, part: ModelPart) -> tuple[nn.Module, ...]:
        """The modules whose dropout acts when ``part`` is trained."""
        return self.modules(part)

    def embed(self, word_vectors: Tensor) -> Tensor:
        """The embedding module's output."""
        embedded: Tensor = self.model.embeddings(inputs_embeds=word_vectors)
        return embedded

    @abstractmethod
    def states(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        """The last layer's output at every token, (n, L, d)."""

    def state_at(self, embedded: Tensor, mask: Tensor | None, position: int) -> Tensor:
        """The last layer's output at one token of each sentence, (n, d); a negative position counts from its end."""
        return pick(self.states(embedded, mask), mask, position)

    def training_state(self, embedded: Tensor, mask: Tensor | None, position: int, drop: Drop | None) -> Tensor:
        """As :meth:`state_at`, with ``drop`` wherever the library has dropout in the encoder; None is none at all."""
        from geco_ray.geco.dropout import replaced_dropout

        with replaced_dropout(self.dropping("encoder"), drop):
            return self.state_at(embedded, mask, position)

    def pool(self, state: Tensor) -> Tensor:
        """What the head gets of the state (n, d) at :attr:`class_position`."""
        return state

    @abstractmethod
    def head(self, labels: int) -> nn.Module:
        """The head of the family's sequence classifier; its weights are to be drawn."""

    @staticmethod
    def decode(whole: Any, states: Tensor) -> Tensor:
        """Scores of the whole vocabulary by the head of ``masked_class``, (..., vocabulary)."""
        raise NotImplementedError(f"{type(whole).__name__} fills in no token")


def pick(states: Tensor, mask: Tensor | None, position: int) -> Tensor:
    """The states (n, L, d) at one token of each sentence, (n, d); a negative position counts from its end."""
    if position >= 0 or mask is None:
        return states[:, position]
    index = (mask.sum(1) + position)[:, None, None].expand(-1, 1, states.shape[2])
    return states.gather(1, index).squeeze(1)


BACKBONES: Registry[type[Backbone]] = Registry("encoder family", "geco_ray.geco.backbones")
