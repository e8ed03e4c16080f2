"""BERT: a pretrained pooler over the first position, and a short last layer, since nothing else reaches the pooler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from geco_ray.geco.backbones.base import BACKBONES, Backbone, Drop, pick
from geco_ray.geco.model_parts import ModelPart

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers.models.bert.modeling_bert import BertLayer


@BACKBONES.register("bert", title="BERT")
class Bert(Backbone):
    """See the module. Layers are computed here, so that dropout needs no generator but its own."""

    model_class = "BertModel"
    masked_class = "BertForMaskedLM"
    masked_key = "cls.predictions.transform."
    parts = ("embeddings", "encoder", "pooler", "head")

    def modules(self, part: ModelPart) -> tuple[nn.Module, ...]:
        return (getattr(self.model, part),)

    def states(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        keep = None if mask is None else mask[:, None, None, :]
        hidden = embedded
        for layer in self.model.encoder.layer:
            hidden = bert_layer(layer, hidden, hidden, keep, None)
        return hidden

    def state_at(self, embedded: Tensor, mask: Tensor | None, position: int) -> Tensor:
        """As in the base class, with only that token in the last layer."""
        return self.training_state(embedded, mask, position, None)

    def training_state(self, embedded: Tensor, mask: Tensor | None, position: int, drop: Drop | None) -> Tensor:
        keep = None if mask is None else mask[:, None, None, :]
        hidden = embedded
        layers = self.model.encoder.layer
        for number, layer in enumerate(layers, start=1):
            last = number == len(layers)
            hidden = bert_layer(layer, hidden, _at(hidden, mask, position) if last else hidden, keep, drop)
        return hidden[:, 0]

    def pool(self, state: Tensor) -> Tensor:
        pooled: Tensor = self.model.pooler(state[:, None])
        return pooled

    def head(self, labels: int) -> nn.Module:
        from geco_ray.geco.pretrained.heads import LinearHead

        return LinearHead(self.width, labels)

    @staticmethod
    def decode(whole: Any, states: Tensor) -> Tensor:
        scores: Tensor = whole.cls(states)
        return scores


def _at(hidden: Tensor, mask: Tensor | None, position: int) -> Tensor:
    if position >= 0:
        return hidden[:, position : position + 1]
    return pick(hidden, mask, position)[:, None]


def bert_layer(layer: BertLayer, hidden: Tensor, queries: Tensor, keep: Tensor | None, drop: Drop | None) -> Tensor:
    """One BERT layer at the positions ``queries``, with ``drop`` on attention weights and on both outputs."""
    from torch.nn import functional

    attention = layer.attention
    own = attention.self
    heads, size = own.num_attention_heads, own.attention_head_size
    query = own.query(queries).unflatten(2, (heads, size)).transpose(1, 2)
    key = own.key(hidden).unflatten(2, (heads, size)).transpose(1, 2)
    value = own.value(hidden).unflatten(2, (heads, size)).transpose(1, 2)
    if drop is None:
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=keep)
    else:  # the library's own dropout would draw from the global generator
        scores = query @ key.transpose(2, 3) / size**0.5
        scores = scores if keep is None else scores.masked_fill(~keep, float("-inf"))
        mixed = drop(scores.softmax(3)) @ value
    mixed = attention.output.dense(mixed.transpose(1, 2).flatten(2))
    attended = attention.output.LayerNorm((mixed if drop is None else drop(mixed)) + queries)
    changed = layer.output.dense(layer.intermediate(attended))
    result: Tensor = layer.output.LayerNorm((changed if drop is None else drop(changed)) + attended)
    return result
