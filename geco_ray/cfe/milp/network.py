"""A ReLU network as plain float64 arrays: what bounds, walks and solvers compute with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from geco_ray.cfe.mlp import Mlp

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ReluNet:
    """Affine layers with ReLU between them and one output, the logit.

    Args:
        weights: one float64 (out, in) matrix per affine layer; the last has one row.
        biases: one float64 (out,) vector per affine layer.
    """

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]

    @classmethod
    def from_mlp(cls, model: Mlp) -> ReluNet:
        """The same function as ``model`` (at least one hidden layer), its float32 parameters as float64.

        Raises:
            ValueError: the model has no hidden layer.
        """
        if len(model.weights) < 2:
            raise ValueError("a ReLU network needs at least one hidden layer")
        return cls(
            tuple(np.asarray(w, dtype=np.float64) for w in model.weights),
            tuple(np.asarray(b, dtype=np.float64) for b in model.biases),
        )

    @property
    def hidden_layers(self) -> int:
        """Number of ReLU layers."""
        return len(self.weights) - 1

    @cached_property
    def splits(self) -> Floats:
        """Where each hidden layer ends when all units are laid side by side, (hidden_layers - 1,)."""
        return np.cumsum([len(bias) for bias in self.biases[:-1]])[:-1]

    @cached_property
    def units(self) -> int:
        """Number of hidden units."""
        return int(sum(len(bias) for bias in self.biases[:-1]))

    def logit(self, x: Floats) -> Floats:
        """The logit of each row of ``x`` (n, d), float64 (n,)."""
        a = np.asarray(x, dtype=np.float64)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            a = np.maximum(a @ weight.T + bias, 0.0)
        return np.asarray((a @ self.weights[-1].T + self.biases[-1])[:, 0])

    def preactivations(self, x: Floats) -> Floats:
        """What enters each ReLU at the point ``x`` (d,), all hidden layers side by side, (units,)."""
        found, a = [], x
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            z = weight @ a + bias
            found.append(z)
            a = np.maximum(z, 0.0)
        return np.concatenate(found)

    def region(self, pattern: Bools) -> tuple[Floats, Floats]:
        """The affine functions that hold where the units of ``pattern`` (units,) are on and the others off.

        Returns:
            Matrix (units + 1, d) and offset (units + 1,): pre-activations in order, then the logit.
        """
        matrix, offset = self.weights[0], self.biases[0]
        matrices, offsets = [matrix], [offset]
        parts = np.split(pattern, self.splits)
        for on, weight, bias in zip(parts, self.weights[1:], self.biases[1:], strict=True):
            kept = weight[:, on]
            matrix, offset = kept @ matrix[on], kept @ offset[on] + bias
            matrices.append(matrix)
            offsets.append(offset)
        return np.concatenate(matrices), np.concatenate(offsets)
