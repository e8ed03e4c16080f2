"""BERT-ZS: no training; a pretrained language model fills in a label word in a prompt (GECOBench, zero-shot)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from geco_ray.errors import UserError
from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
from geco_ray.geco.paradigms.zero_shot import LabelWordOptions, ZeroShot
from geco_ray.geco.protocol import resolve_protocol
from geco_ray.registry import Options, Profile

if TYPE_CHECKING:
    import torch

    from geco_ray.geco.classifiers import Classifier
    from geco_ray.geco.encoders import EncoderSource
    from geco_ray.geco.pretrained.prompts import Prompt


class BertZSOptions(LabelWordOptions):
    """``prompt``: a text with ``[MASK]`` and ``{sentence}``; null is the protocol's for the task's classes."""

    prompt: str | None = None


@PARADIGMS.register(
    "bert_zs", title="BERT-ZS", options=BertZSOptions, profile=Profile(order=1, colour="#56607A", marker="*", aims=True)
)
class BertZS(ZeroShot):
    """See the module. The explained scalar is the score of the class's label word at ``[MASK]``.

    ``corrected`` keeps the prompt in every baseline and perturbation; ``paper`` replaces it as well, and decides and
    explains by the published rule (see :class:`LabelWordClassifier`).
    """

    def check(self, setup: TrainingSetup, options: Options) -> None:
        from geco_ray.geco.encoders import encoder_positions
        from geco_ray.geco.pretrained.folder import has_masked_lm
        from geco_ray.geco.tokens import require_positions

        if not has_masked_lm(setup.source.name, setup.source.folder):
            raise UserError(
                f"encoder {setup.source.name!r} has no head that fills in a word",
                where="paradigm bert_zs",
                remedy="Take the paradigm bert_zs_label_embedding, which needs none, or another encoder",
            )
        tokens = setup.tokens.laid_out(_prompt(setup, options).layout)
        require_positions(tokens, encoder_positions(setup.source), setup.source.name)

    def classifier(self, setup: TrainingSetup, options: Options) -> Classifier:
        from geco_ray.geco.pretrained.loading import load_masked_lm
        from geco_ray.geco.pretrained.prompts import LABEL_WORDS
        from geco_ray.geco.pretrained.zero_shot import LabelWordClassifier

        model, prompt = load_masked_lm(setup.source), _prompt(setup, options)
        pieces = setup.tokens.tokenizer.pieces(LABEL_WORDS.values())
        rivals = sorted({found[0] for found in pieces.values() if len(found) == 1} - set(prompt.label_ids))
        return LabelWordClassifier(model, prompt, rivals, published=setup.protocol.zero_shot_rule == "first_of_five")

    def rebuild(
        self, state: Mapping[str, torch.Tensor], options: Options, protocol: str, source: EncoderSource
    ) -> Classifier:
        from geco_ray.geco.pretrained.loading import load_masked_lm
        from geco_ray.geco.pretrained.zero_shot import LabelWordClassifier, prompt_of

        published = resolve_protocol(protocol).zero_shot_rule == "first_of_five"
        rivals = state["rival_ids"].tolist()
        return LabelWordClassifier(load_masked_lm(source), prompt_of(state), rivals, published=published)


def _prompt(setup: TrainingSetup, options: Options) -> Prompt:
    from geco_ray.geco.encoders import encoder_family
    from geco_ray.geco.pretrained.prompts import default_prompt, make_prompt, words_of

    assert isinstance(options, BertZSOptions)
    task, protocol, where = setup.tokens.task, setup.protocol, f"paradigm bert_zs, {setup.tokens.task.name}"
    words = words_of(task.labels, dict(options.label_words or ()), where)
    next_token = encoder_family(setup.source).next_token
    published = protocol.zero_shot_prompt == "examples"
    text = options.prompt or default_prompt(task.labels, published=published, next_token=next_token)
    kept_ends = 1 if protocol.zero_shot_baseline == "replaced" else None
    return make_prompt(text, words, setup.tokens.tokenizer, next_token=next_token, kept_ends=kept_ends, where=where)
