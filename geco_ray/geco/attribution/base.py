"""What an attribution method is given and what it returns. Importing this file imports no torch."""

from __future__ import annotations

import typing
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator, model_validator

from geco_ray.geco.protocol import Protocol
from geco_ray.geco.tokens import SPECIAL, IntArray, TaskTokens, TokenRow, pad_rows
from geco_ray.registry import Options, Registry
from geco_ray.seeds import numpy_stream

if TYPE_CHECKING:
    import torch

    from geco_ray.geco.classifiers import Classifier

T = TypeVar("T")
FloatArray = npt.NDArray[np.float64]
Scalar = Literal["logit", "probability"]
Baseline = Literal["pad", "mask", "unk", "zero"]
Precision = Literal["bfloat16", "tf32"]

ZERO_ID = -1
"""In baseline ids: a position whose word embedding is the zero vector."""

FIXED_ROWS = {"cpu": 4}
"""Rows of a pass by kind of device, else 32. On a processor eight are 1.15 times as fast a row as four, but of six
sentences, which have about as many lengths, four waste half as much; a GPU takes 32 in the time of one."""

LENGTH_STEP = 4


class ModelOptions(Options):
    """Base of the options of methods that ask the classifier. Null is what the protocol says for the method.

    Attributes:
        baseline: what stands for an absent word: a special token, or the zero vector as its word embedding.
        scalar: what is explained of a class: its logit, or its softmax probability.
        explained_class: the predicted class, the true one, or the class of that number.
        precision: of matrix products; null is float32. ``bfloat16`` computes them in that type, ``tf32`` keeps 10 bits
            of their factors, on a GPU that has it. Predictions are made in float32 whatever it is.
        settings: ``library_defaults`` fills in the method library's own defaults, which the paper's text names, where
            no other value is given. It is no part of a result's identity; what it fills in is.
    """

    LIBRARY_DEFAULTS: ClassVar[Mapping[str, object]] = {}

    baseline: Baseline | None = None
    scalar: Scalar | None = None
    explained_class: Literal["predicted", "true"] | Annotated[int, Field(ge=0)] | None = None
    precision: Precision | None = None
    settings: Literal["library_defaults"] | None = Field(default=None, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("settings") == "library_defaults":
            return {**cls.LIBRARY_DEFAULTS, **{key: value for key, value in given.items() if key != "settings"}}
        return given

    @field_validator("explained_class", mode="before")
    @classmethod
    def _true(cls, given: Any) -> Any:
        return "true" if given is True else given  # YAML reads the bare word as a truth value


@dataclass(frozen=True, eq=False)
class Batch:
    """Sentences for one pass; ``positions`` are their places in the rows.

    There may be fewer positions than rows; what is computed for the rows beyond them is to be dropped, and so is what
    is computed for a row's positions beyond its sentence.

    Attributes:
        ids: (n, L) on the device.
        baseline_ids: (n, L), see :func:`baseline_ids`.
        mask: (n, L), True at tokens; None when nothing is ever padded. To be handed to the classifier.
    """

    positions: list[int]
    ids: torch.Tensor
    baseline_ids: torch.Tensor
    mask: torch.Tensor | None
    inputs: AttributionInputs

    @cached_property
    def classes(self) -> torch.Tensor:
        """The class to explain of each row, (n,)."""
        import torch

        classes = self.inputs.classes[self.positions]
        filled = np.append(classes, np.repeat(classes[-1:], len(self.ids) - len(classes)))
        return torch.from_numpy(filled).to(self.inputs.device)

    def sentences(self, values: torch.Tensor) -> Iterator[tuple[int, npt.NDArray[np.floating]]]:
        """Each position with its part of ``values`` (n, L), as long as its sentence."""
        for position, array in zip(self.positions, values[: len(self.positions)].cpu().numpy(), strict=True):
            yield position, array[: len(self.inputs.sentences[position])]


@dataclass(frozen=True, eq=False)
class AttributionInputs:
    """Which sentences to explain, for which classifier, and how.

    Attributes:
        classifier: frozen, in eval mode, on ``device``.
        tokens: the task.
        rows: indices in the test split; results are in this order.
        protocol: the switches.
        device: where tensors live.
        token_budget: most tokens in one forward pass; changes memory, speed, and results by rounding only.
        stream: names the random streams; with the row's index it makes one stream per row.
        explained_class: as in :class:`ModelOptions`, resolved.
        scalar: as there; None leaves it to the method and the protocol.
        baseline: as there, resolved.
        known: what inputs with the same rows share: the predictions.
    """

    classifier: Classifier
    tokens: TaskTokens
    rows: tuple[int, ...]
    protocol: Protocol
    device: torch.device
    token_budget: int
    stream: tuple[str | int | None, ...]
    explained_class: Literal["predicted", "true"] | int = "predicted"
    scalar: Scalar | None = None
    baseline: Baseline = "pad"
    known: dict[str, IntArray] = field(default_factory=dict)
    _computed: dict[Callable[..., Any], Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def sentences(self) -> tuple[TokenRow, ...]:
        """The tokens of each row."""
        return tuple(self.tokens.test[row] for row in self.rows)

    @cached_property
    def classes(self) -> IntArray:
        """The class to explain, per row."""
        if self.explained_class == "predicted":
            return np.maximum(self.predicted, 0)  # a rule may predict none, and then explains the same of every class
        if self.explained_class == "true":
            return np.array([self.tokens.task.test[row].target for row in self.rows], np.int64)
        return np.full(len(self.rows), self.explained_class, np.int64)

    @property
    def predicted(self) -> IntArray:
        """The predicted class, per row.

        Where padding changes predictions (``paper``'s OLA-CEA) the rows are padded to the longest sentence of the
        split, as in the published evaluation; the explanation itself is of the unpadded sentence.
        """
        if "predicted" not in self.known:
            self.known["predicted"] = self._predict_padded() if self.classifier.padding_matters else self._predict()
        return self.known["predicted"]

    def _predict(self) -> IntArray:
        import torch

        predicted = np.zeros(len(self.rows), np.int64)
        with torch.no_grad():
            for batch in self.batches():
                found = self.classifier.predict(batch.ids, batch.mask).cpu().numpy()
                predicted[batch.positions] = found[: len(batch.positions)]
        return predicted

    def _predict_padded(self) -> IntArray:
        import torch

        longest, pad = self.tokens.longest_test, self.tokens.tokenizer.pad_id
        step = max(1, self.token_budget // max(1, longest))
        predicted = np.zeros(len(self.rows), np.int64)
        with torch.no_grad():
            for start in range(0, len(predicted), step):
                ids, _ = pad_rows(self.sentences[start : start + step], pad, longest)
                logits = self.classifier(torch.from_numpy(ids).to(self.device), None)
                predicted[start : start + step] = logits.argmax(1).cpu().numpy()
        return predicted

    def once(self, compute: Callable[[AttributionInputs], T]) -> T:
        """What ``compute`` makes of these inputs: computed at the first call, then kept and shared by all methods."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        computed: T = self._computed[compute]
        return computed

    def random(self, method: str, row: int) -> np.random.Generator:
        """The random stream of one method at one row; the same in any batch and order."""
        return numpy_stream("geco", "explain", *self.stream, method, row)

    def batches(self, *, copies: int = 1) -> Iterator[Batch]:
        """All sentences in batches whose shape follows from the sentence's length alone, longest first.

        Matrix products of another shape may round differently, so a fixed shape makes a result the same to the last bit
        alone and in any company: as many rows as the device takes, halved until the token budget holds them, filled up
        with repetitions. Lengths are rounded up to a multiple of four and masked, unless the classifier attends to
        padding.

        Args:
            copies: how many times the caller's pass holds each row.
        """
        import torch

        step = 1 if self.classifier.padding_matters else LENGTH_STEP
        by_length: dict[int, list[int]] = defaultdict(list)
        for position, sentence in enumerate(self.sentences):
            by_length[-(-len(sentence) // step) * step].append(position)
        for length in sorted(by_length, reverse=True):
            rows = max(1, FIXED_ROWS.get(self.device.type, 32) // copies)
            while rows > 1 and copies * rows * length > self.token_budget:
                rows //= 2
            for start in range(0, len(by_length[length]), rows):
                positions = by_length[length][start : start + rows]
                taken = [self.sentences[i] for i in positions + positions[-1:] * (rows - len(positions))]
                pad = self.tokens.tokenizer.pad_id
                ids, mask = pad_rows(taken, pad, length)
                baseline = np.full_like(ids, pad)
                baseline[mask] = np.concatenate([self.baseline_ids(row) for row in taken])
                device = self.device
                yield Batch(
                    positions,
                    torch.from_numpy(ids).to(device),
                    torch.from_numpy(baseline).to(device),
                    torch.from_numpy(mask).to(device) if step > 1 else None,
                    self,
                )

    def baseline_ids(self, sentence: TokenRow) -> IntArray:
        """The sentence without its words: every piece of a word is the baseline's id, special tokens stay; (L,)."""
        absent = ZERO_ID if self.baseline == "zero" else getattr(self.tokens.tokenizer, f"{self.baseline}_id")
        return np.where(sentence.words == SPECIAL, sentence.ids, absent)


@dataclass(frozen=True, eq=False)
class Scores:
    """Attributions in the order of the rows.

    Attributes:
        values: one array per row, signed, per token (special tokens included) or per word; None for a row that has
            none, with its reason.
        unit: which of the two.
        completeness_gap: per row, sum of the attributions less ``explained_change``; None for methods that promise
            nothing of the kind.
        explained_change: per row, change of the explained scalar from the baseline to the sentence.
        steps: per row, how many steps were taken, where a method chooses.
        reasons: per row, why it has no attribution; None where it has one.
        note: what has to be said under a table of these results, one sentence.
    """

    values: Sequence[npt.NDArray[np.floating] | None]
    unit: Literal["token", "word"] = "token"
    completeness_gap: FloatArray | None = None
    explained_change: FloatArray | None = None
    steps: IntArray | None = None
    reasons: Sequence[str | None] | None = None
    note: str | None = None


class AttributionMethod(typing.Protocol):
    """A method: a function of the inputs and of its own options; register it in :data:`ATTRIBUTIONS`."""

    def __call__(self, inputs: AttributionInputs, options: Options, /) -> Scores: ...


ATTRIBUTIONS: Registry[AttributionMethod] = Registry("attribution method", "geco_ray.geco.attribution")
