"""Classifiers that are not trained: a language model's scores of label words, or how near a sentence lies to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from geco_ray.geco.backbones.base import Backbone
from geco_ray.geco.pretrained.classifier import BackboneClassifier
from geco_ray.geco.pretrained.loading import MaskedLm
from geco_ray.geco.pretrained.prompts import Prompt
from geco_ray.geco.tokens import TokenLayout

TOP = 5
"""Under the published rule only as many tokens with the largest scores count."""


class LabelWordClassifier(BackboneClassifier):
    """Scores of label words at one token of a prompt.

    By the plain rule a class's logit is the score of its label word. By the published rule the prediction is the first
    label word among the five tokens with the largest scores, and none if none is there; what is explained of any class
    is the score of that word (of the best token, where there is none), negative ones as zero, and its probability is
    that against zeros for the other classes.

    Args:
        model: never copied.
        prompt: what stands around each sentence, and the label words.
        rivals: ids of further words that the published rule takes for label words, of no class of the task.
        published: which rule.
    """

    layout: TokenLayout

    def __init__(self, model: MaskedLm, prompt: Prompt, rivals: Sequence[int], *, published: bool) -> None:
        super().__init__(model.backbone)
        self.model, self.whole = model, model.whole
        self.layout = prompt.layout
        self.published = published
        self.decides_by_logits = not published
        self.label_ids: Tensor
        self.rival_ids: Tensor
        self.register_buffer("label_ids", torch.tensor(prompt.label_ids))
        self.register_buffer("rival_ids", torch.tensor(list(rivals), dtype=torch.int64))
        self.requires_grad_(False)

    def logits_from_embedded(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        scores = self._scores(embedded, mask)
        if not self.published:
            return scores[:, self.label_ids]
        picked, _ = self._pick(scores)
        return picked.clamp(min=0)[:, None].expand(-1, len(self.label_ids))

    def predict(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        if not self.published:
            return super().predict(ids, mask)
        _, place = self._pick(self._scores(self.embed(self.word_vectors(ids)), mask))
        return torch.where(place < len(self.label_ids), place, -1)

    def probabilities(self, logits: Tensor) -> Tensor:
        if not self.published:
            return super().probabilities(logits)
        return logits.exp() / (logits.exp() + len(self.label_ids) - 1)

    def _scores(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        """The vocabulary's scores at the prompt's token, (n, vocabulary)."""
        return self.model.scores(self.backbone.state_at(embedded, mask, self.layout.class_position))

    def _pick(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The picked token's score (n,), and its place among label words and rivals, or -1."""
        best, place = scores[:, torch.cat([self.label_ids, self.rival_ids])].max(1)
        top = scores.topk(min(TOP, scores.shape[1])).values
        inside = best >= top[:, -1]
        return torch.where(inside, best, top[:, 0]), torch.where(inside, place, -1)

    def trained_state(self) -> dict[str, Tensor]:
        layout = self.layout
        ends = -1 if layout.kept_ends is None else layout.kept_ends
        return {
            "label_ids": self.label_ids,
            "rival_ids": self.rival_ids,
            "prefix": torch.tensor(layout.prefix, dtype=torch.int64),
            "suffix": torch.tensor(layout.suffix, dtype=torch.int64),
            "reads": torch.tensor([layout.class_position, int(layout.space_before_words), ends]),
        }


def prompt_of(state: Mapping[str, Tensor]) -> Prompt:
    """The prompt in a stored :class:`LabelWordClassifier`."""
    position, spaced, ends = state["reads"].tolist()
    prefix, suffix, labels = (tuple(state[name].tolist()) for name in ("prefix", "suffix", "label_ids"))
    return Prompt(TokenLayout(prefix, suffix, position, bool(spaced), None if ends < 0 else ends), labels)


class LabelEmbeddingClassifier(BackboneClassifier):
    """Cosine of a sentence's mean state and the mean state of each label word alone.

    Args:
        backbone: never copied.
        labels: the label words' mean states, (classes, d); see :meth:`mean_states`.
    """

    def __init__(self, backbone: Backbone, labels: Tensor) -> None:
        super().__init__(backbone)
        self.labels: Tensor
        self.register_buffer("labels", labels)
        self.requires_grad_(False)

    def logits_from_embedded(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        means = mean_states(self.backbone, embedded, mask)
        return torch.nn.functional.cosine_similarity(means[:, None], self.labels[None], dim=2)

    def trained_state(self) -> dict[str, Tensor]:
        return {"labels": self.labels}


def mean_states(backbone: Backbone, embedded: Tensor, mask: Tensor | None) -> Tensor:
    """The mean of the last layer's output over all tokens of each sentence, (n, d)."""
    states = backbone.states(embedded, mask)
    if mask is None:
        return states.mean(1)
    kept = mask[..., None].to(states)
    return (states * kept).sum(1) / kept.sum(1)
