"""ELECTRA: embeddings that may be narrower than the layers, and a head of two layers with a GELU between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from geco_ray.geco.backbones.base import BACKBONES, Backbone
from geco_ray.geco.model_parts import ModelPart

if TYPE_CHECKING:
    from torch import Tensor, nn


@BACKBONES.register("electra", title="ELECTRA")
class Electra(Backbone):
    """See the module. The projection of the embeddings to the layers' width belongs to the encoder."""

    model_class = "ElectraModel"
    masked_class = "ElectraForMaskedLM"  # the generator; a discriminator's weights lack its head
    masked_key = "generator_predictions."

    def modules(self, part: ModelPart) -> tuple[nn.Module, ...]:
        if part == "embeddings":
            return (self.model.embeddings,)
        narrow = hasattr(self.model, "embeddings_project")
        return (*([self.model.embeddings_project] if narrow else []), self.model.encoder)

    def states(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        if hasattr(self.model, "embeddings_project"):
            embedded = self.model.embeddings_project(embedded)
        keep = None if mask is None else mask[:, None, None, :]
        states: Tensor = self.model.encoder(embedded, attention_mask=keep)[0]
        return states

    def head(self, labels: int) -> nn.Module:
        from torch import nn

        from geco_ray.geco.pretrained.heads import DenseHead

        return DenseHead(self.width, labels, nn.GELU(), (True, True))

    @staticmethod
    def decode(whole: Any, states: Tensor) -> Tensor:
        scores: Tensor = whole.generator_lm_head(whole.generator_predictions(states))
        return scores
