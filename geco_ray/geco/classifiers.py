"""What every classifier that is explained answers, and the smallest of them: one attention layer (OLA).

All answer the same four questions, so that an attribution method needs to know none of them. Shapes: ``ids`` (n, L)
int64; ``mask`` (n, L) bool, True at tokens, or None when nothing is padded; vectors (n, L, d); logits (n, labels).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from geco_ray.geco.backbones.base import pick
from geco_ray.geco.tokens import IntArray, TokenLayout


class Classifier(nn.Module):
    """What every classifier offers to training and to attribution."""

    padding_matters = False
    """True when padding changes a prediction, so that evaluation has to pad exactly as the paper did."""

    layout: TokenLayout | None = None
    """What has to stand around a sentence; None is what the encoder's tokenizer puts there."""

    decides_by_logits = True
    """False where prediction and probability are not the largest and the softmax of the logits."""

    @property
    @abstractmethod
    def bytes_per_token(self) -> int:
        """Rough memory of one token in a forward and backward pass, to size batches by."""

    @abstractmethod
    def word_vectors(self, ids: Tensor) -> Tensor:
        """The word embeddings of ``ids``: no position, type or normalisation."""

    def knows(self, ids: Tensor) -> Tensor:
        """Which of ``ids`` have a word embedding, (n, L) bool; all, unless a classifier keeps but a part."""
        return torch.ones_like(ids, dtype=torch.bool)

    @abstractmethod
    def embed(self, word_vectors: Tensor) -> Tensor:
        """What the embedding module makes of word embeddings."""

    @abstractmethod
    def logits_from_embedded(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        """Logits from the embedding module's output."""

    @abstractmethod
    def trained_state(self) -> dict[str, Tensor]:
        """The tensors that training changed; with the encoder they rebuild the classifier."""

    def trained_parameters(self) -> list[nn.Parameter]:
        """The parameters that training changes, in the model's order: those of :meth:`trained_state`, by default."""
        names = self.trained_state()
        return [parameter for name, parameter in self.named_parameters() if name in names]

    def logits_from_words(self, word_vectors: Tensor, mask: Tensor | None) -> Tensor:
        """Logits from word embeddings, embedded once."""
        return self.logits_from_embedded(self.embed(word_vectors), mask)

    def predict(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """The predicted class of each row, (n,); -1 where a rule predicts none."""
        return self(ids, mask).argmax(1)  # type: ignore[no-any-return]

    def probabilities(self, logits: Tensor) -> Tensor:
        """What counts as the probability of each class, (n, labels)."""
        return logits.softmax(1)

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Logits from ids."""
        return self.logits_from_words(self.word_vectors(ids), mask)


def _linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """A linear layer with torch's default initialisation, drawn from ``generator``."""
    layer = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")  # draws nothing itself
    bound = 1 / math.sqrt(inputs)
    nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)
    nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
    return layer


class OlaClassifier(Classifier):
    """One-layer attention (GECOBench, classifiers): embedding, one attention head, first position, tanh, linear.

    Only one position is used, so only its attention row is computed; and since its scores are linear in the
    tokens, the query is taken through the key matrix and the mean through the value matrix once per sentence. This
    equals the full computation up to rounding.

    The table holds the rows of ``vocabulary`` only. Rows of other ids never get a gradient, and the norm by which
    gradients are clipped is the same without them.

    Args:
        vocabulary: sorted distinct ids.
        vocabulary_size: number of ids of the tokenizer; that many rows are drawn before those of ``vocabulary`` are
            taken, so that the initial weights do not depend on the task.
        dimension: d.
        labels: number of classes.
        mask_keys: padded positions get no attention; otherwise the mask has no effect, as in the published code.
        seed: of the initial weights: torch's defaults, and the numbers that ``torch.manual_seed(seed)`` would give.
        class_position: the token that attends, 0 the first; -1 the last, with tokenizers that end a sentence with it.
    """

    def __init__(
        self,
        vocabulary: IntArray,
        vocabulary_size: int,
        dimension: int,
        labels: int,
        *,
        mask_keys: bool,
        seed: int,
        class_position: int = 0,
    ) -> None:
        super().__init__()
        self.class_position = class_position
        self.mask_keys = mask_keys
        self.padding_matters = not mask_keys
        self.vocabulary: Tensor
        self.register_buffer("vocabulary", torch.from_numpy(vocabulary.copy()))
        # A generator of our own: torch.manual_seed would seed those of CUDA too.
        generator = torch.Generator(device="cpu").manual_seed(seed)
        table = nn.init.normal_(torch.empty(vocabulary_size, dimension), generator=generator)
        self.table = nn.Parameter(table[self.vocabulary].clone())
        self.query, self.key, self.value, self.dense = (_linear(dimension, dimension, generator) for _ in range(4))
        self.activation = nn.Tanh()  # a module, since DeepLift has no rule for functions
        self.output = _linear(dimension, labels, generator)

    @property
    def bytes_per_token(self) -> int:
        return 32 * self.table.shape[1]

    def knows(self, ids: Tensor) -> Tensor:
        return torch.isin(ids, self.vocabulary)

    def rows_of(self, ids: Tensor) -> Tensor:
        """Rows of the table for ids of the tokenizer.

        Raises:
            ValueError: an id that is not in the vocabulary.
        """
        rows = torch.searchsorted(self.vocabulary, ids).clamp_(max=len(self.vocabulary) - 1)
        if not torch.equal(self.vocabulary[rows], ids):
            raise ValueError("a token is not in the vocabulary that this classifier was trained with")
        return rows

    def word_vectors(self, ids: Tensor) -> Tensor:
        return self.word_vectors_of_rows(self.rows_of(ids))

    def word_vectors_of_rows(self, rows: Tensor) -> Tensor:
        """As :meth:`word_vectors`, from rows of the table."""
        return functional.embedding(rows, self.table)

    def embed(self, word_vectors: Tensor) -> Tensor:
        return word_vectors

    def logits_from_embedded(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        query = self.query(pick(embedded, mask, self.class_position))
        through_key = query @ self.key.weight
        # Products and sums, not batched matrix products: those are slower for matrices this small.
        scores = (embedded * through_key.unsqueeze(1)).sum(2) + (query @ self.key.bias).unsqueeze(1)
        scores = scores / embedded.shape[2] ** 0.5
        if mask is not None and self.mask_keys:
            scores = scores.masked_fill(~mask, float("-inf"))
        mean = (scores.softmax(1).unsqueeze(2) * embedded).sum(1)
        logits: Tensor = self.output(self.activation(self.dense(self.value(mean))))
        return logits

    def trained_state(self) -> dict[str, Tensor]:
        return dict(self.state_dict())


def load_trained_state(classifier: Classifier, state: Mapping[str, Tensor]) -> None:
    """Put the tensors of :meth:`Classifier.trained_state` back.

    Raises:
        ValueError: they are not those of this classifier.
    """
    expected = classifier.trained_state()
    if {name: tensor.shape for name, tensor in expected.items()} != {n: t.shape for n, t in state.items()}:
        raise ValueError("the stored weights are not those of this classifier")
    classifier.load_state_dict(dict(state), strict=False)
