"""The classifiers that are explained: one attention layer (OLA), and BERT with a classification head.

All answer the same four questions, so that an attribution method needs to know none of them. Shapes: ``ids`` (n, L)
int64; ``mask`` (n, L) bool, True at tokens, or None when nothing is padded; vectors (n, L, d); logits (n, labels).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from geco_ray.geco.model_parts import MODEL_PARTS, ModelPart
from geco_ray.geco.tokens import IntArray

if TYPE_CHECKING:
    from transformers import BertModel
    from transformers.models.bert.modeling_bert import BertLayer


class Classifier(nn.Module):
    """What every classifier offers to training and to attribution."""

    padding_matters = False
    """True when padding changes a prediction, so that evaluation has to pad exactly as the paper did."""

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

    def logits_from_words(self, word_vectors: Tensor, mask: Tensor | None) -> Tensor:
        """Logits from word embeddings, embedded once."""
        return self.logits_from_embedded(self.embed(word_vectors), mask)

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

    Only the first position is used, so only its attention row is computed; and since its scores are linear in the
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
    """

    def __init__(
        self, vocabulary: IntArray, vocabulary_size: int, dimension: int, labels: int, *, mask_keys: bool, seed: int
    ) -> None:
        super().__init__()
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
        query = self.query(embedded[:, 0])
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


Drop = Callable[[Tensor], Tensor]
"""Dropout of hidden states."""


class BertClassifier(Classifier):
    """BERT's pooled output, dropout, and a linear head; the architecture of ``BertForSequenceClassification``.

    The head starts from N(0, initializer_range) with zero bias. Of the last layer only the first position is
    computed, since nothing else reaches the pooler; this equals the full computation up to rounding.

    Args:
        encoder: a BERT model with pooler; never copied. Parts of it that are trained or redrawn change in place.
        labels: number of classes.
        seed: of the redrawn weights; torch's global generator is left alone.
        trained: the parts that training changes; all others are frozen.
        redrawn: the parts that start from random weights. Embedding tables are drawn Xavier-uniform (GECOBench,
            classifiers), linear layers like the head; layer norms stay.
    """

    def __init__(
        self,
        encoder: BertModel,
        labels: int,
        *,
        seed: int,
        trained: Sequence[ModelPart] = ("head",),
        redrawn: Sequence[ModelPart] = ("head",),
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.trained, self.redrawn = tuple(trained), tuple(redrawn)
        config = encoder.config
        with torch.random.fork_rng(devices=[]):
            self.head = nn.Linear(config.hidden_size, labels)
        generator = torch.Generator(device="cpu").manual_seed(seed)
        for name in ("head", *(name for name in MODEL_PARTS if name in self.redrawn and name != "head")):
            _redraw(self.part(name), config.initializer_range, generator)
        self.requires_grad_(False)
        for parameter in self.trained_parameters():
            parameter.requires_grad_(True)

    def part(self, name: str) -> nn.Module:
        """The module of that name, of :data:`MODEL_PARTS`."""
        part: nn.Module = self.head if name == "head" else getattr(self.encoder, name)
        return part

    def trained_parameters(self) -> list[nn.Parameter]:
        """The parameters of the trained parts, in the model's order."""
        names = [name for name in MODEL_PARTS if name in self.trained]
        return [parameter for name in names for parameter in self.part(name).parameters()]

    @property
    def bytes_per_token(self) -> int:
        config = self.encoder.config
        return 4 * int(config.num_hidden_layers) * (12 * int(config.hidden_size) + 3 * int(config.intermediate_size))

    def word_vectors(self, ids: Tensor) -> Tensor:
        vectors: Tensor = self.encoder.embeddings.word_embeddings(ids)
        return vectors

    def embed(self, word_vectors: Tensor) -> Tensor:
        embedded: Tensor = self.encoder.embeddings(inputs_embeds=word_vectors)
        return embedded

    def logits_from_embedded(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        logits: Tensor = self.head(self.pooled_from_embedded(embedded, mask))
        return logits

    def pooled(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """The pooler's output, (n, d)."""
        return self.pooled_from_embedded(self.embed(self.word_vectors(ids)), mask)

    def training_logits(self, ids: Tensor, mask: Tensor | None, drop: Drop | None) -> Tensor:
        """Logits from ids with ``drop`` inside and in front of the trained parts; None is none at all."""
        drops: dict[str, Drop | None] = dict.fromkeys(self.trained, drop)
        embedded = _dropped(self.embed(self.word_vectors(ids)), drops.get("embeddings"))
        pooled = self.pooled_from_embedded(embedded, mask, drops.get("encoder"))
        logits: Tensor = self.head(_dropped(pooled, drops.get("head")))
        return logits

    def pooled_from_embedded(self, embedded: Tensor, mask: Tensor | None, drop: Drop | None = None) -> Tensor:
        """The pooler's output from the embedding module's output, (n, d); ``drop`` acts inside the layers."""
        keep = None if mask is None else mask[:, None, None, :]
        hidden = embedded
        layers = self.encoder.encoder.layer
        for number, layer in enumerate(layers, start=1):
            hidden = _bert_layer(layer, hidden, hidden[:, :1] if number == len(layers) else hidden, keep, drop)
        pooled: Tensor = self.encoder.pooler(hidden)
        return pooled

    def trained_state(self) -> dict[str, Tensor]:
        changed = [name for name in MODEL_PARTS if name in (*self.trained, *self.redrawn)]
        return {
            f"{name if name == 'head' else f'encoder.{name}'}.{key}": tensor
            for name in changed
            for key, tensor in self.part(name).state_dict().items()
        }


def load_trained_state(classifier: Classifier, state: Mapping[str, Tensor]) -> None:
    """Put the tensors of :meth:`Classifier.trained_state` back.

    Raises:
        ValueError: they are not those of this classifier.
    """
    expected = classifier.trained_state()
    if {name: tensor.shape for name, tensor in expected.items()} != {n: t.shape for n, t in state.items()}:
        raise ValueError("the stored weights are not those of this classifier")
    classifier.load_state_dict(dict(state), strict=False)


@torch.no_grad()
def _redraw(part: nn.Module, spread: float, generator: torch.Generator) -> None:
    """Draws on the CPU, wherever the part is: the generator is there, and a seed means the same on every device."""
    for module in part.modules():
        if isinstance(module, nn.Embedding):
            module.weight.copy_(nn.init.xavier_uniform_(torch.empty(module.weight.shape), generator=generator))
        elif isinstance(module, nn.Linear):
            module.weight.copy_(nn.init.normal_(torch.empty(module.weight.shape), 0.0, spread, generator=generator))
            module.bias.zero_()


def _dropped(values: Tensor, drop: Drop | None) -> Tensor:
    return values if drop is None else drop(values)


def _bert_layer(layer: BertLayer, hidden: Tensor, queries: Tensor, keep: Tensor | None, drop: Drop | None) -> Tensor:
    """One BERT layer at the positions ``queries``, with ``drop`` on attention weights and on both outputs."""
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
    attended = attention.output.LayerNorm(_dropped(mixed, drop) + queries)
    changed = layer.output.dense(layer.intermediate(attended))
    result: Tensor = layer.output.LayerNorm(_dropped(changed, drop) + attended)
    return result
