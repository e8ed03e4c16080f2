"""LIME (Ribeiro et al. 2016; GECOBench, methods) by the original package, on words by position or on a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, FloatArray, ModelOptions, Scores
from geco_ray.geco.tokens import IntArray, TokenRow
from geco_ray.registry import Options, Profile

KERNEL_WIDTH = 25.0
TEXT_CLASS = 1
MAX_PIECES = 512
"""The published code cuts a changed text to as many tokens, the special ones among them."""


class LimeOptions(ModelOptions):
    """Attributes:
    n_samples: changed sentences, the unchanged one among them; null is the protocol's, 1,000 or 100.
    num_features: keep that many words, those of the largest weights; null keeps all.
    text: with ``paper``, what is made of a sentence's pieces: each spelled by itself (``pieces``, the published code,
        null), or joined to clean words (``clean``, the code before April 2025).
    """

    LIBRARY_DEFAULTS: ClassVar = {"n_samples": 5000, "num_features": 10}

    n_samples: int | None = Field(None, ge=2)
    num_features: int | None = Field(None, ge=1)
    text: Literal["pieces", "clean"] | None = None


@ATTRIBUTIONS.register(
    "lime", title="LIME", options=LimeOptions, profile=Profile(order=7, colour="#1F78A8", marker="P", aims=True)
)
def lime(inputs: AttributionInputs, options: Options) -> Scores:
    """Weights of the package's local ridge regression.

    ``corrected``: one feature per word with a piece, by position, so that repeated words are told apart and punctuation
    counts; an absent word has the baseline's ids; a blank word has 0. ``paper``: features are the strings of letters
    and digits in a text, words are taken out of it, class 1 is explained, and a token has the weight of the first
    feature, in order of size, in which it occurs. (So ``he`` has that of ``the``, and nothing else has one.)
    """
    assert isinstance(options, LimeOptions)
    samples = options.n_samples or inputs.protocol.lime_samples
    explain = _explain_words if inputs.protocol.lime_unit == "word" else _explain_text
    values = [explain(inputs, options, samples, position) for position in range(len(inputs.rows))]
    return Scores(values, "word" if inputs.protocol.lime_unit == "word" else "token")


def _explain_words(inputs: AttributionInputs, options: LimeOptions, samples: int, position: int) -> FloatArray:
    from lime.lime_base import LimeBase

    from geco_ray.geco.passes.perturbation import scores

    sentence, row = inputs.sentences[position], inputs.rows[position]
    inside = sentence.words >= 0
    present = np.unique(sentence.words[inside])
    value = np.zeros(sentence.word_count)
    if not len(present):
        return value
    generator = inputs.random("lime", row)
    kept = draw_words(generator, len(present), samples)
    tokens = np.ones((samples, len(sentence)), np.bool_)
    tokens[:, inside] = kept[:, np.searchsorted(present, sentence.words[inside])]
    changed = np.where(tokens, sentence.ids, inputs.baseline_ids(sentence))
    found = scores(inputs, list(changed), inputs.scalar or inputs.protocol.ig_scalar)
    distances = 100 * (1 - np.sqrt(kept.mean(1)))  # cosine to the unchanged sentence
    features = options.num_features or len(present)
    base = LimeBase(_kernel, random_state=_state(generator))
    _, weights, _, _ = base.explain_instance_with_data(
        kept.astype(np.float64),
        found,
        distances,
        int(inputs.classes[position]),
        features,
        feature_selection="auto" if features < len(present) else "none",
    )
    for feature, weight in weights:
        value[present[feature]] = weight
    return value


def draw_words(generator: np.random.Generator, words: int, samples: int) -> npt.NDArray[np.bool_]:
    """Which words stay, (samples, words): all in the first row; each other lacks 1 to all of them, any number alike."""
    absent = generator.integers(1, words + 1, samples - 1)
    rank = generator.random((samples - 1, words)).argsort(1).argsort(1)
    return np.concatenate([np.ones((1, words), np.bool_), rank >= absent[:, None]])


def _kernel(distances: FloatArray) -> FloatArray:
    return np.sqrt(np.exp(-(distances**2) / KERNEL_WIDTH**2))


def _state(generator: np.random.Generator) -> np.random.RandomState:
    """The kind of generator that the package takes."""
    return np.random.RandomState(int(generator.integers(2**32)))


def _explain_text(inputs: AttributionInputs, options: LimeOptions, samples: int, position: int) -> FloatArray:
    from lime.lime_text import LimeTextExplainer

    from geco_ray.geco.passes.perturbation import scores

    sentence, row = inputs.sentences[position], inputs.rows[position]
    spelled = _spell(inputs, sentence)
    text = " ".join(spelled) if options.text != "clean" else _clean(spelled)
    if not any(character.isalnum() or character == "_" for character in text):
        return np.zeros(len(sentence))
    scalar = inputs.scalar or inputs.protocol.ig_scalar

    def classify(texts: Sequence[str]) -> FloatArray:
        return scores(inputs, _encode(inputs, texts), scalar)

    label = TEXT_CLASS if options.explained_class is None else int(inputs.classes[position])
    explainer = LimeTextExplainer(random_state=_state(inputs.random("lime", row)))
    explanation = explainer.explain_instance(
        text,
        classify,
        labels=(label,),
        num_features=options.num_features or len(sentence),
        num_samples=samples,
    )
    weights = explanation.as_list(label=label)
    inside = sentence.words >= 0
    value = np.zeros(len(sentence))
    value[inside] = [next((weight for word, weight in weights if token in word), 0.0) for token in spelled]
    return value


def _spell(inputs: AttributionInputs, sentence: TokenRow) -> list[str]:
    """The sentence's pieces without the special tokens."""
    text = inputs.tokens.tokenizer.text
    return [text(int(i)) for i in sentence.ids[sentence.words >= 0]]


def _clean(spelled: Sequence[str]) -> str:
    return " ".join(spelled).replace(" ##", "")


def _encode(inputs: AttributionInputs, texts: Sequence[str]) -> list[IntArray]:
    """Ids of each text, split at blanks and tokenised word by word; of one length where padding is attended to."""
    tokenizer = inputs.tokens.tokenizer
    split = [text.split() for text in texts]
    pieces = tokenizer.pieces(word for words in split for word in words)
    around = len(tokenizer.layout.prefix) + len(tokenizer.layout.suffix)
    rows = [[i for word in words for i in pieces[word]][: MAX_PIECES - around] for words in split]
    ids = [tokenizer.layout.wrap(row) for row in rows]
    if not inputs.classifier.padding_matters:
        return ids
    longest = max(len(row) for row in ids)
    return [np.pad(row, (0, longest - len(row)), constant_values=tokenizer.pad_id) for row in ids]
