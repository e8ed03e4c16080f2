"""RoBERTa: BERT's layers, positions that begin behind the padding's, and a head of two layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from geco_ray.geco.backbones.base import BACKBONES, Backbone
from geco_ray.geco.model_parts import ModelPart

if TYPE_CHECKING:
    from torch import Tensor, nn


@BACKBONES.register("roberta", title="RoBERTa")
class Roberta(Backbone):
    """See the module.

    From ids the library gives a padding token in the midst of a sentence, as a baseline has it, the padding's position.
    Here ids always go through the word embedding, and a token's position is its place.
    """

    model_class = "RobertaModel"
    masked_class = "RobertaForMaskedLM"
    masked_key = "lm_head.dense."
    load_arguments: ClassVar[Mapping[str, Any]] = {"add_pooling_layer": False}
    space_before_words = True

    @staticmethod
    def longest(config: Mapping[str, Any]) -> int | None:
        return int(config.get("max_position_embeddings", 512)) - int(config.get("pad_token_id", 1)) - 1

    def modules(self, part: ModelPart) -> tuple[nn.Module, ...]:
        return (getattr(self.model, part),)

    def states(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        keep = None if mask is None else mask[:, None, None, :]
        states: Tensor = self.model.encoder(embedded, attention_mask=keep)[0]
        return states

    def head(self, labels: int) -> nn.Module:
        from torch import nn

        from geco_ray.geco.pretrained.heads import DenseHead

        return DenseHead(self.width, labels, nn.Tanh(), (True, True))

    @staticmethod
    def decode(whole: Any, states: Tensor) -> Tensor:
        scores: Tensor = whole.lm_head(states)
        return scores
