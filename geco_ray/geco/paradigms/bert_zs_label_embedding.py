"""Zero-shot without a language-modeling head: how near a sentence lies to each label word (cosine of mean states)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
from geco_ray.geco.paradigms.zero_shot import LabelWordOptions, ZeroShot
from geco_ray.registry import Options, Profile

if TYPE_CHECKING:
    import torch

    from geco_ray.geco.classifiers import Classifier
    from geco_ray.geco.encoders import EncoderSource


@PARADIGMS.register(
    "bert_zs_label_embedding",
    title="BERT-ZS (label embedding)",
    options=LabelWordOptions,
    profile=Profile(order=1, colour="#56607A", marker="*", aims=True),
)
class LabelEmbedding(ZeroShot):
    """See the module. It has a name of its own, so that every result and figure says how it was scored."""

    def check(self, setup: TrainingSetup, options: Options) -> None:
        from geco_ray.geco.encoders import encoder_positions
        from geco_ray.geco.tokens import require_positions

        _words(setup, options)
        require_positions(setup.tokens, encoder_positions(setup.source), setup.source.name)

    def classifier(self, setup: TrainingSetup, options: Options) -> Classifier:
        import torch

        from geco_ray.geco.pretrained.loading import load_backbone
        from geco_ray.geco.pretrained.zero_shot import LabelEmbeddingClassifier, mean_states

        backbone, tokenizer = load_backbone(setup.source), setup.tokens.tokenizer
        words = _words(setup, options)
        means = []
        with torch.no_grad():
            for word in words.values():
                ids = torch.from_numpy(tokenizer.layout.wrap(tokenizer.pieces([word])[word]))[None]
                means.append(mean_states(backbone, backbone.embed(backbone.word_vectors(ids)), None))
        return LabelEmbeddingClassifier(backbone, torch.cat(means))

    def rebuild(
        self, state: Mapping[str, torch.Tensor], options: Options, protocol: str, source: EncoderSource
    ) -> Classifier:
        from geco_ray.geco.pretrained.loading import load_backbone
        from geco_ray.geco.pretrained.zero_shot import LabelEmbeddingClassifier

        return LabelEmbeddingClassifier(load_backbone(source), state["labels"])


def _words(setup: TrainingSetup, options: Options) -> dict[str, str]:
    from geco_ray.geco.pretrained.prompts import words_of

    assert isinstance(options, LabelWordOptions)
    where = f"paradigm bert_zs_label_embedding, {setup.tokens.task.name}"
    return words_of(setup.tokens.task.labels, dict(options.label_words or ()), where)
