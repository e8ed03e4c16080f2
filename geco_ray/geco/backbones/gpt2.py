"""GPT-2: each token sees those before it, so the class is read at the end token that closes every sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from geco_ray.geco.backbones.base import BACKBONES, Backbone
from geco_ray.geco.model_parts import ModelPart

if TYPE_CHECKING:
    from torch import Tensor, nn


@BACKBONES.register("gpt2", title="GPT-2")
class Gpt2(Backbone):
    """See the module. The end token is the padding as well: the mask tells them apart, not the id."""

    model_class = "GPT2Model"
    masked_class = "GPT2LMHeadModel"  # its weights are those of the word embedding
    next_token = True
    prefix = ()
    suffix = ("eos",)
    class_position = -1
    space_before_words = True
    special = ("eos",)

    @staticmethod
    def longest(config: Mapping[str, Any]) -> int | None:
        return int(config.get("n_positions", 1024))

    def modules(self, part: ModelPart) -> tuple[nn.Module, ...]:
        model = self.model
        return (model.wte, model.wpe) if part == "embeddings" else (model.h, model.ln_f)

    def dropping(self, part: ModelPart) -> tuple[nn.Module, ...]:
        return (self.model.drop,) if part == "embeddings" else self.modules(part)

    def embed(self, word_vectors: Tensor) -> Tensor:
        import torch

        places = torch.arange(word_vectors.shape[1], device=word_vectors.device)
        embedded: Tensor = self.model.drop(word_vectors + self.model.wpe(places))
        return embedded

    def states(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        import torch

        keep = None
        if mask is not None:
            length = mask.shape[1]
            before = torch.ones(length, length, dtype=torch.bool, device=mask.device).tril()
            keep = before & mask[:, None, None, :]
        hidden = embedded
        for block in self.model.h:
            found = block(hidden, attention_mask=keep, use_cache=False)
            hidden = found if isinstance(found, torch.Tensor) else found[0]
        states: Tensor = self.model.ln_f(hidden)
        return states

    def head(self, labels: int) -> nn.Module:
        from geco_ray.geco.pretrained.heads import LinearHead

        return LinearHead(self.width, labels, bias=False)

    @staticmethod
    def decode(whole: Any, states: Tensor) -> Tensor:
        scores: Tensor = whole.lm_head(states)
        return scores
