"""What an attribution method is given and what it returns. Importing this file imports no torch."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from geco_ray.geco.protocol import Protocol
from geco_ray.geco.tokens import IntArray, TaskTokens, TokenRow, equal_length_batches
from geco_ray.registry import Options, Registry
from geco_ray.seeds import numpy_stream

if TYPE_CHECKING:
    import torch

    from geco_ray.geco.classifiers import Classifier

FloatArray = npt.NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Batch:
    """Sentences of one length: ``ids`` (n, L) and ``classes`` (n,) on the device, ``positions`` in the rows.

    There may be fewer positions than rows; what is computed for the rows beyond them is to be dropped.
    """

    positions: list[int]
    ids: torch.Tensor
    classes: torch.Tensor


@dataclass(frozen=True, eq=False)
class AttributionInputs:
    """Which sentences to explain, for which classifier, and how.

    Attributes:
        classifier: frozen, in eval mode, on ``device``.
        tokens: the task.
        rows: indices in the test split; results are in this order.
        classes: the class to explain, per row.
        protocol: the switches.
        device: where tensors live.
        token_budget: most tokens in one forward pass; changes memory and speed, not results.
        stream: names the random streams; with the row's index it makes one stream per row.
    """

    classifier: Classifier
    tokens: TaskTokens
    rows: tuple[int, ...]
    classes: IntArray
    protocol: Protocol
    device: torch.device
    token_budget: int
    stream: tuple[str | int | None, ...]
    _computed: dict[Callable[..., Any], Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def sentences(self) -> tuple[TokenRow, ...]:
        """The tokens of each row."""
        return tuple(self.tokens.test[row] for row in self.rows)

    def once(self, compute: Callable[[AttributionInputs], T]) -> T:
        """What ``compute`` makes of these inputs: computed at the first call, then kept and shared by all methods."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        computed: T = self._computed[compute]
        return computed

    def random(self, method: str, row: int) -> np.random.Generator:
        """The random stream of one method at one row; the same in any batch and order."""
        return numpy_stream("geco", "explain", *self.stream, method, row)

    def batches(self, *, rows: int | None = None) -> Iterator[Batch]:
        """All sentences in batches of equal length.

        Args:
            rows: batches of exactly that many rows, filled up with repetitions; default, as many as the token budget
                allows. Matrix products of another shape may round differently, so a fixed shape makes a result the
                same to the last bit alone and in any company.
        """
        import torch

        lengths = [len(row) for row in self.sentences]
        for positions in equal_length_batches(lengths, self.token_budget, rows=rows):
            taken = positions + positions[-1:] * ((rows or 0) - len(positions))
            ids = torch.from_numpy(np.stack([self.sentences[position].ids for position in taken]))
            classes = torch.from_numpy(self.classes[taken])
            yield Batch(positions, ids.to(self.device), classes.to(self.device))


@dataclass(frozen=True, eq=False)
class Scores:
    """Attributions in the order of the rows.

    Attributes:
        values: one array per row, signed, per token (special tokens included) or per word.
        unit: which of the two.
        completeness_gap: per row, sum of the attributions less the change of the explained scalar from the baseline;
            None for methods that promise nothing of the kind.
    """

    values: Sequence[npt.NDArray[np.floating]]
    unit: Literal["token", "word"] = "token"
    completeness_gap: FloatArray | None = None


class AttributionMethod(typing.Protocol):
    """A method: a function of the inputs and of its own options; register it in :data:`ATTRIBUTIONS`."""

    def __call__(self, inputs: AttributionInputs, options: Options, /) -> Scores: ...


ATTRIBUTIONS: Registry[AttributionMethod] = Registry("attribution method", "geco_ray.geco.attribution")
