"""The fast pass of the searches: a network on many rows such that a row's numbers do not depend on its neighbours.

What counts in the end is decided by :mod:`geco_ray.cfe.decision`, whose sums run in another order; the two differ on
rows within rounding of the threshold only.

A matrix product takes other kernels for other numbers of rows, and then rounds otherwise: a request alone could stop
one step earlier than in a batch. So rows are always padded to a multiple of :data:`TILE`; from there on the kernels
treat every row alike (measured on CPU for all sizes up to 12,800 rows, and held by the tests).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geco_ray.cfe.mlp import Mlp

TILE = 64
_CHUNK = 1024 * TILE


def pad_rows(x: torch.Tensor) -> torch.Tensor:
    """``x`` (k, d) with zero rows added up to the next multiple of :data:`TILE`; itself if there is nothing to add."""
    missing = -x.shape[0] % TILE
    return functional.pad(x, (0, 0, 0, missing)) if missing else x


class RowNet:
    """A ReLU network with one logit, in float32 on one device, without autograd."""

    def __init__(self, model: Mlp, device: str | torch.device = "cpu") -> None:
        self.device = torch.device(device)
        self._weights = [torch.tensor(w, dtype=torch.float32, device=self.device) for w in model.weights]
        self._biases = [torch.tensor(b, dtype=torch.float32, device=self.device) for b in model.biases]

    def tensor(self, x: NDArray[np.floating]) -> torch.Tensor:
        """A float32 copy of ``x`` on this network's device."""
        return torch.tensor(np.asarray(x), dtype=torch.float32, device=self.device)

    def logit(self, x: torch.Tensor) -> torch.Tensor:
        """Logit of each row of ``x`` (k, d); (k,)."""
        parts = [self._forward(part)[-1][:, 0] for part in torch.split(pad_rows(x), _CHUNK)]
        return (parts[0] if len(parts) == 1 else torch.cat(parts))[: len(x)]

    def probability(self, x: torch.Tensor) -> torch.Tensor:
        """Probability of the favourable class of each row of ``x`` (k, d); (k,)."""
        return torch.sigmoid(self.logit(pad_rows(x)))[: len(x)]

    def favourable(self, x: torch.Tensor) -> torch.Tensor:
        """Whether the logit of each row of ``x`` (k, d) is at least 0; bool (k,)."""
        return self.logit(x) >= 0

    def logit_and_gradient(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (k,) and their derivatives by the inputs (k, d) at the rows of ``x`` (k, d)."""
        layers = self._forward(pad_rows(x))
        gradient = self._weights[-1].expand(len(layers[-1]), -1)
        for weight, hidden in zip(self._weights[-2::-1], layers[-2::-1], strict=True):
            gradient = (gradient * (hidden > 0)) @ weight
        return layers[-1][: len(x), 0], gradient[: len(x)]

    def _forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        hidden, layers = x, []
        for weight, bias in zip(self._weights[:-1], self._biases[:-1], strict=True):
            hidden = functional.linear(hidden, weight, bias).relu_()
            layers.append(hidden)
        layers.append(functional.linear(hidden, self._weights[-1], self._biases[-1]))
        return layers


class DevicePass:
    """Several networks as a device's own kernels see them, to be compared with what was decided.

    Args:
        models: the networks, in the order of the answers' columns.
        device: where they run.
    """

    def __init__(self, models: Sequence[Mlp], device: str | torch.device) -> None:
        self.models, self._nets = tuple(models), [RowNet(model, device) for model in models]

    def favourable(self, x: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Whether each network calls each row of ``x`` (n, d) favourable; bool (n, models)."""
        columns = [net.favourable(net.tensor(x)).cpu().numpy() for net in self._nets]
        return np.stack(columns, axis=1)
