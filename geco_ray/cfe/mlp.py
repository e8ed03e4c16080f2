"""The benchmark's classifier: a ReLU network with one logit, held as plain float32 arrays.

A model is data, not a framework object: it hashes, stores and travels as bytes.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geco_ray.cfe import decision
from geco_ray.errors import UserError

if TYPE_CHECKING:
    import numpy.typing as npt

HIDDEN = (32, 32)


@dataclass(frozen=True, eq=False)
class Mlp:
    """Weights float32 (out, in) and biases float32 (out,) of each layer in forward order; the last layer has one unit.

    Inputs are standardised rows (n, d) of any float type and are cast to float32. Favourable means p >= 0.5.
    """

    weights: tuple[npt.NDArray[np.float32], ...]
    biases: tuple[npt.NDArray[np.float32], ...]

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.biases) or not self.weights:
            raise ValueError("a network has one bias for each weight matrix")
        width = self.weights[0].shape[1]
        for weight, bias in zip(self.weights, self.biases, strict=True):
            if weight.ndim != 2 or weight.shape[1] != width or bias.shape != weight.shape[:1]:
                raise ValueError(f"layer shapes do not fit: {weight.shape} after width {width}, bias {bias.shape}")
            if weight.dtype != np.float32 or bias.dtype != np.float32:
                raise ValueError("weights and biases are float32")
            weight.flags.writeable = bias.flags.writeable = False  # a frozen model whose arrays change is none
            width = weight.shape[0]
        if width != 1:
            raise ValueError("the last layer has one unit, the logit of the favourable class")

    @property
    def inputs(self) -> int:
        """Number of features d."""
        return int(self.weights[0].shape[1])

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return tuple(int(weight.shape[0]) for weight in self.weights[:-1])

    def logit(self, x: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
        """Logits float32 (n,) of rows (n, d), the same bits for a row in any company (:mod:`geco_ray.cfe.decision`)."""
        weights, biases = ([array[None] for array in arrays] for arrays in (self.weights, self.biases))
        return np.asarray(decision.logits(weights, biases, x)[0])

    def probability(self, x: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
        """Probability of the favourable class, float32 (n,)."""
        return decision.probability(self.logit(x))

    def favourable(self, x: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
        """Whether each row is decided favourably (p >= 0.5), bool (n,)."""
        return np.asarray(self.logit(x) >= 0)

    def to_bytes(self) -> bytes:
        """The model in safetensors format; equal models give equal bytes."""
        from safetensors.numpy import save

        tensors = {}
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            tensors[f"{layer}.weight"], tensors[f"{layer}.bias"] = weight, bias
        return bytes(save(tensors))

    @staticmethod
    def from_bytes(data: bytes) -> Mlp:
        """Read what :meth:`to_bytes` wrote.

        Raises:
            UserError: the bytes are no such model.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            tensors = load(data)
            layers = range(len(tensors) // 2)
            weights = tuple(tensors[f"{layer}.weight"] for layer in layers)
            return Mlp(weights, tuple(tensors[f"{layer}.bias"] for layer in layers))
        except (SafetensorError, KeyError, ValueError, AttributeError) as error:
            raise UserError(f"the stored weights are not a model of ours: {error}") from None

    def digest(self) -> str:
        """SHA-256 of the weights."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @staticmethod
    def initial(inputs: int, hidden: Sequence[int] = HIDDEN, *, seed: int) -> Mlp:
        """An untrained network with torch's default initialisation of ``nn.Linear`` under ``seed``.

        The numbers are those of layers created in forward order after ``torch.manual_seed(seed)``, as the paper does;
        they are drawn from a generator of our own, so torch's global state is neither read nor changed.
        """
        import torch

        generator = torch.Generator(device="cpu").manual_seed(seed)
        weights, biases = [], []
        for fan_in, fan_out in itertools.pairwise([inputs, *hidden, 1]):
            weight, bound = torch.empty(fan_out, fan_in), 1 / math.sqrt(fan_in)
            torch.nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)
            weights.append(weight.numpy())
            biases.append(torch.empty(fan_out).uniform_(-bound, bound, generator=generator).numpy())
        return Mlp(tuple(weights), tuple(biases))
