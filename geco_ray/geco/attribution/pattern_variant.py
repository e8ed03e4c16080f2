"""Pattern Variant: covariance of a word's tf-idf with the label; needs no classifier (GECOBench, methods).

A bag-of-words form of the Pattern of Haufe et al. (2014): the data's own association of words and labels, and so a
ceiling that a model-based method is compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, FloatArray, Scores
from geco_ray.geco.rows import Row
from geco_ray.geco.tokens import TaskTokens, TokenRow
from geco_ray.registry import Options, Profile


@ATTRIBUTIONS.register(
    "pattern_variant", title="Pattern Variant", profile=Profile(order=10, colour="#333333", marker="h", aims=False)
)
def pattern_variant(inputs: AttributionInputs, options: Options) -> Scores:
    """Covariance per word (``corrected``) or per word piece (``paper``), looked up for each row of the inputs."""
    if inputs.protocol.pattern_unit == "piece":
        return Scores(_piece_scores(inputs))
    return Scores(_word_scores(inputs), unit="word")


def label_covariance(
    documents: Sequence[str | Sequence[str]],
    labels: npt.NDArray[np.float64],
    *,
    vocabulary: Sequence[str] | None = None,
    analyzer: Callable[[Sequence[str]], list[str]] | str = "word",
) -> tuple[list[str], FloatArray]:
    """Sample covariance (ddof 1) between each term's tf-idf (smooth idf, rows of unit L2 norm) and each label column.

    Args:
        documents: one per row.
        labels: (n,) or (n, columns).
        vocabulary: terms to count; default, those that occur.
        analyzer: how scikit-learn's vectoriser reads a document.

    Returns:
        the terms, and an array (terms, columns).
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    vectorizer = CountVectorizer(vocabulary=vocabulary, analyzer=analyzer)
    weights = TfidfTransformer().fit_transform(vectorizer.fit_transform(documents))
    columns = labels.reshape(len(labels), -1)
    centred = columns - columns.mean(0)
    covariance: FloatArray = np.asarray(weights.T @ centred) / (len(labels) - 1)
    return list(vectorizer.get_feature_names_out()), covariance


def piece_covariance(tokens: TaskTokens, split: str, labels: FloatArray) -> tuple[list[str], FloatArray]:
    """The published rule: pieces joined by blanks are read again by a text vectoriser.

    The vectoriser lower-cases and takes words of two letters or more, so punctuation, single letters and every
    ``##`` piece never count and have covariance zero.

    Args:
        tokens: the task.
        split: ``train`` or ``test``.
        labels: (rows of the split,) or (rows, columns).

    Returns:
        the pieces and their covariances as :func:`label_covariance` gives them.
    """
    text = tokens.tokenizer.text
    rows, _ = _split(tokens, split)
    texts = {int(i): text(int(i)) for i in np.unique(np.concatenate([row.ids for row in rows]))}
    documents = [" ".join(texts[i] for i in row.ids.tolist()) for row in rows]
    vocabulary = sorted(text for text in set(texts.values()) if text == text.lower())
    return label_covariance(documents, labels, vocabulary=vocabulary)


def _piece_scores(inputs: AttributionInputs) -> list[FloatArray]:
    text, fit = inputs.tokens.tokenizer.text, inputs.protocol.pattern_fit
    _, task_rows = _split(inputs.tokens, fit)
    terms, covariance = piece_covariance(inputs.tokens, fit, _labels(inputs, task_rows))
    pieces = [[text(i) for i in sentence.ids.tolist()] for sentence in inputs.sentences]
    return _look_up(inputs, terms, covariance, pieces)


def _word_scores(inputs: AttributionInputs) -> list[FloatArray]:
    """Words, lower-cased and stripped. A blank word, and one that was not seen in the fit, has zero."""
    _, rows = _split(inputs.tokens, inputs.protocol.pattern_fit)
    terms, covariance = label_covariance([row.words for row in rows], _labels(inputs, rows), analyzer=match_words)
    test = inputs.tokens.task.test
    return _look_up(
        inputs, terms, covariance, [[word.lower().strip() for word in test[row].words] for row in inputs.rows]
    )


def _labels(inputs: AttributionInputs, rows: Sequence[Row]) -> FloatArray:
    """The number of the class (n, 1), or one indicator per class (n, classes)."""
    targets = np.array([row.target for row in rows])[:, None]
    if inputs.protocol.pattern_label == "number":
        return targets.astype(np.float64)
    indicators: FloatArray = (targets == np.arange(len(inputs.tokens.task.labels))).astype(np.float64)
    return indicators


def _look_up(
    inputs: AttributionInputs, terms: Sequence[str], covariance: FloatArray, texts: Sequence[Sequence[str]]
) -> list[FloatArray]:
    index = {term: number for number, term in enumerate(terms)}
    padded = np.vstack([covariance, np.zeros((1, covariance.shape[1]))])  # the last row is for unknown terms
    result = []
    for row, line in zip(inputs.rows, texts, strict=True):
        column = inputs.tokens.task.test[row].target if covariance.shape[1] > 1 else 0
        result.append(padded[[index.get(term, len(terms)) for term in line], column])
    return result


def match_words(words: Sequence[str]) -> list[str]:
    """Words as they are matched: lower-cased, stripped, blank ones left out."""
    return [word for word in (raw.lower().strip() for raw in words) if word]


def _split(tokens: TaskTokens, name: str) -> tuple[Sequence[TokenRow], Sequence[Row]]:
    if name == "train":
        return tokens.train, tokens.task.train
    return tokens.test, tokens.task.test
