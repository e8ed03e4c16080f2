"""XLNet: relative positions, the class read at the last token, a head of two layers with a tanh between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from geco_ray.geco.backbones.base import BACKBONES, Backbone
from geco_ray.geco.model_parts import ModelPart

if TYPE_CHECKING:
    from torch import Tensor, nn

CLASS_TYPE = 2
"""Token type of the class token, as the library's tokenizer gives it; all other tokens have 0."""


@BACKBONES.register("xlnet", title="XLNet")
class Xlnet(Backbone):
    """See the module. The library pads on the left so that the class token comes last; masked, the side is the same.

    The library's dropout of embedded words lies between both parts, and acts when the encoder is trained.
    """

    model_class = "XLNetModel"
    prefix = ()
    suffix = ("sep", "cls")
    class_position = -1
    space_before_words = True

    @staticmethod
    def longest(config: Mapping[str, Any]) -> int | None:
        return None

    def modules(self, part: ModelPart) -> tuple[nn.Module, ...]:
        return (self.model.word_embedding if part == "embeddings" else self.model.layer,)

    def dropping(self, part: ModelPart) -> tuple[nn.Module, ...]:
        return () if part == "embeddings" else (self.model.dropout, self.model.layer)

    def embed(self, word_vectors: Tensor) -> Tensor:
        return word_vectors

    def states(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        import torch

        kept = torch.ones(embedded.shape[:2], dtype=torch.bool, device=embedded.device) if mask is None else mask
        types = torch.zeros_like(kept, dtype=torch.int64)
        types.scatter_(1, kept.sum(1, keepdim=True) - 1, CLASS_TYPE)
        found = self.model(
            inputs_embeds=embedded,
            attention_mask=None if mask is None else mask.to(embedded),
            token_type_ids=types,
            use_mems=False,
        )
        states: Tensor = found.last_hidden_state
        return states

    def head(self, labels: int) -> nn.Module:
        from torch import nn

        from geco_ray.geco.pretrained.heads import DenseHead

        return DenseHead(self.width, labels, nn.Tanh(), (False, True))
