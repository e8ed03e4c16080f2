"""A pretrained encoder of any family under a newly drawn head."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from geco_ray.geco.backbones.base import Backbone, Drop
from geco_ray.geco.classifiers import Classifier
from geco_ray.geco.dropout import replaced_dropout
from geco_ray.geco.model_parts import ModelPart, parts_of


class BackboneClassifier(Classifier):
    """What classifiers on a backbone share: ids always go through the word embedding, positions are places."""

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone
        self.encoder: nn.Module = backbone.model

    @property
    def bytes_per_token(self) -> int:
        return self.backbone.bytes_per_token

    def trained_parameters(self) -> list[nn.Parameter]:
        return []

    def word_vectors(self, ids: Tensor) -> Tensor:
        return self.backbone.word_vectors(ids)

    def embed(self, word_vectors: Tensor) -> Tensor:
        return self.backbone.embed(word_vectors)


class EncoderClassifier(BackboneClassifier):
    """The architecture of the family's sequence classifier.

    The head starts from N(0, initializer_range) with zero bias. Where the family allows it, only the position that the
    head reads is computed in the last layer; this equals the full computation up to rounding.

    Args:
        backbone: never copied. Parts of it that are trained or redrawn change in place.
        labels: number of classes.
        seed: of the redrawn weights; torch's global generator is left alone.
        trained: the parts that training changes, or ``("all",)``; all others are frozen.
        redrawn: the parts that start from random weights. Embedding tables are drawn Xavier-uniform (GECOBench,
            classifiers), weights of layers like the head; layer norms stay.

    Raises:
        UserError: the family has no part of a name.
    """

    def __init__(
        self,
        backbone: Backbone,
        labels: int,
        *,
        seed: int,
        trained: Sequence[str] = ("head",),
        redrawn: Sequence[str] = ("head",),
    ) -> None:
        super().__init__(backbone)
        family = str(self.encoder.config.model_type)  # type: ignore[union-attr]
        self.trained = parts_of(family, backbone.parts, trained)
        self.redrawn = parts_of(family, backbone.parts, redrawn)
        self.head = backbone.head(labels)
        spread = float(getattr(backbone.model.config, "initializer_range", 0.02))
        generator = torch.Generator(device="cpu").manual_seed(seed)
        for part in sorted(self.redrawn, key=lambda part: part != "head"):  # the head first, whatever else is drawn
            for module in self.modules_of(part):
                _redraw(module, spread, generator)
        self.requires_grad_(False)
        for parameter in self.trained_parameters():
            parameter.requires_grad_(True)

    def modules_of(self, part: ModelPart) -> tuple[nn.Module, ...]:
        """The modules of a part."""
        return (self.head,) if part == "head" else self.backbone.modules(part)

    def trained_parameters(self) -> list[nn.Parameter]:
        """The parameters of the trained parts, in the model's order."""
        modules = [module for part in self.trained for module in self.modules_of(part)]
        return [parameter for module in modules for parameter in module.parameters()]

    def logits_from_embedded(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        logits: Tensor = self.head(self.features_from_embedded(embedded, mask))
        return logits

    def features(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """What the head is given, (n, d)."""
        return self.features_from_embedded(self.embed(self.word_vectors(ids)), mask)

    def features_from_embedded(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        """What the head is given, from the embedding module's output, (n, d)."""
        return self.backbone.pool(self.backbone.state_at(embedded, mask, self.backbone.class_position))

    def training_logits(self, ids: Tensor, mask: Tensor | None, drop: Drop | None) -> Tensor:
        """Logits from ids with ``drop`` inside and in front of the trained parts; None is none at all."""
        drops: dict[str, Drop | None] = dict.fromkeys(self.trained, drop)
        with replaced_dropout(self.backbone.dropping("embeddings"), drops.get("embeddings")):
            embedded = self.embed(self.word_vectors(ids))
        position = self.backbone.class_position
        state = self.backbone.training_state(embedded, mask, position, drops.get("encoder"))
        return self.training_head(self.backbone.pool(state), drops.get("head"))

    def training_head(self, features: Tensor, drop: Drop | None) -> Tensor:
        """Logits from the head's input, with ``drop`` inside it and in front of it."""
        logits: Tensor = self.head(features, drop)
        return logits

    def trained_state(self) -> dict[str, Tensor]:
        changed = [part for part in self.backbone.parts if part in (*self.trained, *self.redrawn)]
        names = {module: name for name, module in self.named_modules()}
        return {
            f"{names[module]}.{key}": tensor
            for part in changed
            for module in self.modules_of(part)
            for key, tensor in module.state_dict().items()
        }


@torch.no_grad()
def _redraw(part: nn.Module, spread: float, generator: torch.Generator) -> None:
    """Draws on the CPU, wherever the part is: the generator is there, and a seed means the same on every device."""
    for module in part.modules():
        if isinstance(module, nn.Embedding):
            module.weight.copy_(nn.init.xavier_uniform_(torch.empty(module.weight.shape), generator=generator))
            continue
        for parameter in module.parameters(recurse=False):
            if parameter.dim() > 1:
                parameter.copy_(nn.init.normal_(torch.empty(parameter.shape), 0.0, spread, generator=generator))
            elif not isinstance(module, nn.LayerNorm):
                parameter.zero_()
