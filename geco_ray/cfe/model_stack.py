"""Many networks asked about the same rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from geco_ray.cfe import decision
from geco_ray.cfe.mlp import Mlp

if TYPE_CHECKING:
    from numpy.typing import NDArray


class StackedModels:
    """Networks grouped by shape, loaded once and asked often; a network's answers are those it gives alone.

    Args:
        models: the networks, in the order of the answers' columns.

    Raises:
        ValueError: no networks, or networks with different numbers of inputs.
    """

    def __init__(self, models: Sequence[Mlp]) -> None:
        if len({model.inputs for model in models}) != 1:
            raise ValueError("the networks must have one number of inputs")
        self.models = tuple(models)
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, model in enumerate(models):
            groups.setdefault(model.hidden, []).append(index)
        self._groups = []
        for members in groups.values():
            own = [models[index] for index in members]
            depth = range(len(own[0].weights))
            weights = [np.stack([model.weights[layer] for model in own]) for layer in depth]
            biases = [np.stack([model.biases[layer] for model in own]) for layer in depth]
            self._groups.append((members, weights, biases))

    def logit(self, x: NDArray[np.floating]) -> NDArray[np.float32]:
        """Logits float32 (n, models) of rows (n, d), see :func:`geco_ray.cfe.decision.logits`."""
        out = np.empty((len(x), len(self.models)), dtype=np.float32)
        for members, weights, biases in self._groups:
            out[:, members] = decision.logits(weights, biases, x).T
        return out

    def probability(self, x: NDArray[np.floating]) -> NDArray[np.float32]:
        """Probabilities of the favourable class, float32 (n, models)."""
        return decision.probability(self.logit(x))

    def favourable(self, x: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Whether each network decides each row favourably, bool (n, models)."""
        return np.asarray(self.logit(x) >= 0)
