"""ALBERT: one layer's weights shared by all, narrow embeddings, and a pretrained pooler as BERT has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from geco_ray.geco.backbones.base import BACKBONES, Backbone
from geco_ray.geco.model_parts import ModelPart

if TYPE_CHECKING:
    from torch import Tensor, nn


@BACKBONES.register("albert", title="ALBERT")
class Albert(Backbone):
    """See the module. The projection of the embeddings to the layers' width belongs to the encoder."""

    model_class = "AlbertModel"
    masked_class = "AlbertForMaskedLM"
    masked_key = "predictions.dense."
    parts = ("embeddings", "encoder", "pooler", "head")
    space_before_words = True

    def modules(self, part: ModelPart) -> tuple[nn.Module, ...]:
        return (getattr(self.model, part),)

    def states(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        keep = None if mask is None else mask[:, None, None, :]
        states: Tensor = self.model.encoder(embedded, attention_mask=keep)[0]
        return states

    def pool(self, state: Tensor) -> Tensor:
        pooled: Tensor = self.model.pooler_activation(self.model.pooler(state))
        return pooled

    def head(self, labels: int) -> nn.Module:
        from geco_ray.geco.pretrained.heads import LinearHead

        return LinearHead(self.width, labels)

    @staticmethod
    def decode(whole: Any, states: Tensor) -> Tensor:
        scores: Tensor = whole.predictions(states)
        return scores
