"""DistilBERT: no types and no pooler; a head of two layers with a ReLU between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from geco_ray.geco.backbones.base import BACKBONES, Backbone
from geco_ray.geco.model_parts import ModelPart

if TYPE_CHECKING:
    from torch import Tensor, nn


@BACKBONES.register("distilbert", title="DistilBERT")
class DistilBert(Backbone):
    """See the module."""

    model_class = "DistilBertModel"
    masked_class = "DistilBertForMaskedLM"
    masked_key = "vocab_transform."

    def modules(self, part: ModelPart) -> tuple[nn.Module, ...]:
        return (self.model.embeddings if part == "embeddings" else self.model.transformer,)

    def embed(self, word_vectors: Tensor) -> Tensor:
        embedded: Tensor = self.model.embeddings(None, word_vectors)
        return embedded

    def states(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        keep = None if mask is None else mask[:, None, None, :]
        states: Tensor = self.model.transformer(embedded, attention_mask=keep)[0]
        return states

    def head(self, labels: int) -> nn.Module:
        from torch import nn

        from geco_ray.geco.pretrained.heads import DenseHead

        return DenseHead(self.width, labels, nn.ReLU(), (False, True))

    @staticmethod
    def decode(whole: Any, states: Tensor) -> Tensor:
        hidden = whole.vocab_layer_norm(whole.activation(whole.vocab_transform(states)))
        scores: Tensor = whole.vocab_projector(hidden)
        return scores
