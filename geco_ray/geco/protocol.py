"""What ``protocol: paper | corrected`` means for GECOBench: one named switch per difference.

``paper`` repeats the published computation with its quirks; ``corrected`` is what the paper describes, with the faults
of the computation repaired. No other file compares protocol names: it asks for the switch it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from geco_ray.errors import unknown_name


@dataclass(frozen=True, slots=True)
class Protocol:
    """The switches, each with the value of ``corrected`` named first.

    Attributes:
        name: the protocol's name.
        validation_split: draw the validation part by source sentence, or by row (variants of one sentence may then
            be on both sides).
        best_epoch: choose the epoch by the mean validation loss over rows, or by the sum of the batches' means.
        dropout: dropout in front of and inside trained parts, or none at all (the encoder was never in train mode).
        cef_head: BERT-CEf trains its head, or leaves it as drawn (the published list of trained layers names a part
            that the model does not have).
        clipping: clip the gradient before the step, or after it.
        ola_gradient: a fresh gradient per step, or one that is never zeroed and only clipped after each step.
        ola_weight_decay: Adam's L2 factor for OLA-CEA; 0.1 is stable only with the accumulating gradient.
        ola_mask: the padding mask acts on the keys, or on the queries (where it has no effect on the first row).
        embedding_path: gradient methods attribute at the word embeddings, or at the output of the embedding module,
            which is then embedded a second time.
        ig_layer: Integrated Gradients interpolates word embeddings, or the output of the embedding module.
        ig_scalar: Integrated Gradients, Kernel SHAP and LIME explain the logit, or the softmax probability, of the
            explained class. The gradient methods explain the logit in both protocols.
        explained_class: the predicted class, or the true one (LIME on texts: always class 1).
        zero_shot_prompt: the bare question, or with the published examples (which three classes have in both).
        zero_shot_rule: the label word with the largest score, or the first among the five largest of all tokens.
        zero_shot_baseline: baselines keep the prompt, or replace it like a word.
        deep_lift: contributions against the embedded baseline, or multipliers against the baseline's token ids taken
            for embeddings.
        gradient_shap_samples: random points per sentence.
        kernel_shap_unit: coalitions of words, or of tokens with the special ones.
        kernel_shap_samples: coalitions per sentence; None is 2 M + 2,048 for M words, at most all subsets.
        lime_unit: words by position, or the words of a text, as the package reads it.
        lime_samples: changed sentences, the unchanged one among them.
        pattern_fit: Pattern Variant is fitted on the train split, or on the test split.
        pattern_unit: on lower-cased words, or on word pieces as a text vectoriser reads them.
        pattern_label: covariance with the indicator of the true label, or with the label's number.
        top_k: overlap of the k best words with the truth, or the truth mask misread as word positions.
    """

    name: Literal["paper", "corrected"]
    validation_split: Literal["sentence", "row"]
    best_epoch: Literal["mean_over_rows", "sum_of_batches"]
    dropout: Literal["trained_parts", "off"]
    cef_head: Literal["trained", "as_drawn"]
    clipping: Literal["before_step", "after_step"]
    ola_gradient: Literal["fresh", "accumulated"]
    ola_weight_decay: float
    ola_mask: Literal["keys", "queries"]
    embedding_path: Literal["once", "twice"]
    ig_layer: Literal["word_embeddings", "embedding_module"]
    ig_scalar: Literal["logit", "probability"]
    explained_class: Literal["predicted", "true"]
    zero_shot_prompt: Literal["question", "examples"]
    zero_shot_rule: Literal["label_words", "first_of_five"]
    zero_shot_baseline: Literal["kept", "replaced"]
    deep_lift: Literal["contributions", "multipliers_from_ids"]
    gradient_shap_samples: int
    kernel_shap_unit: Literal["word", "token"]
    kernel_shap_samples: int | None
    lime_unit: Literal["word", "text"]
    lime_samples: int
    pattern_fit: Literal["train", "test"]
    pattern_unit: Literal["word", "piece"]
    pattern_label: Literal["one_vs_rest", "number"]
    top_k: Literal["overlap", "mask_as_index"]


CORRECTED = Protocol(
    name="corrected",
    validation_split="sentence",
    best_epoch="mean_over_rows",
    dropout="trained_parts",
    cef_head="trained",
    clipping="before_step",
    ola_gradient="fresh",
    ola_weight_decay=1e-3,
    ola_mask="keys",
    embedding_path="once",
    ig_layer="word_embeddings",
    ig_scalar="logit",
    explained_class="predicted",
    zero_shot_prompt="question",
    zero_shot_rule="label_words",
    zero_shot_baseline="kept",
    deep_lift="contributions",
    gradient_shap_samples=25,
    kernel_shap_unit="word",
    kernel_shap_samples=None,
    lime_unit="word",
    lime_samples=1000,
    pattern_fit="train",
    pattern_unit="word",
    pattern_label="one_vs_rest",
    top_k="overlap",
)

PAPER = Protocol(
    name="paper",
    validation_split="row",
    best_epoch="sum_of_batches",
    dropout="off",
    cef_head="as_drawn",
    clipping="after_step",
    ola_gradient="accumulated",
    ola_weight_decay=0.1,
    ola_mask="queries",
    embedding_path="twice",
    ig_layer="embedding_module",
    ig_scalar="probability",
    explained_class="true",
    zero_shot_prompt="examples",
    zero_shot_rule="first_of_five",
    zero_shot_baseline="replaced",
    deep_lift="multipliers_from_ids",
    gradient_shap_samples=5,
    kernel_shap_unit="token",
    kernel_shap_samples=25,
    lime_unit="text",
    lime_samples=100,
    pattern_fit="test",
    pattern_unit="piece",
    pattern_label="number",
    top_k="mask_as_index",
)

PROTOCOLS = {protocol.name: protocol for protocol in (CORRECTED, PAPER)}


def resolve_protocol(name: str) -> Protocol:
    """The switches of ``paper`` or ``corrected``.

    Raises:
        UserError: any other name.
    """
    for known, protocol in PROTOCOLS.items():
        if name == known:
            return protocol
    raise unknown_name("protocol", name, PROTOCOLS)
