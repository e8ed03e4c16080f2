"""RobX's stability of a point, and the two ways to draw its noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from geco_ray.cfe.decision import THRESHOLD
from geco_ray.cfe.rowwise import RowNet
from geco_ray.cfe.search.products import linear
from geco_ray.cfe.search.streams import Stream

if TYPE_CHECKING:
    from geco_ray.cfe.mlp import Mlp

_POINTS_AT_ONCE = 4  # keeps the hidden layer of a thousand samples each within the cache


class Stability:
    """Mean minus population standard deviation, over x plus noise, of the probability of the class of x.

    The first layer is affine, so noise passes it by itself and is added to the point behind it.

    Args:
        model: the base model.
        device: a torch device name.
        samples: noise vectors per point.
        std: their standard deviation in each feature.
        includes_half: whether p = 0.5 is of the favourable class.
    """

    def __init__(self, model: Mlp, device: str, samples: int, std: float, includes_half: bool) -> None:
        self.samples, self.std, self.features = samples, std, model.inputs
        self._includes_half, self._net = includes_half, RowNet(model, device)
        self._layers = [
            (self._net.tensor(weight).double(), self._net.tensor(bias).double())
            for weight, bias in zip(model.weights, model.biases, strict=True)
        ]

    def project(self, generator: np.random.Generator, points: int) -> torch.Tensor:
        """Draw the noise of ``points`` points and send it through the first layer: (points, samples, width)."""
        noise = generator.standard_normal((points, self.samples, self.features))
        noise *= self.std  # in place: these arrays are the largest of the method
        return linear(torch.from_numpy(noise).to(self._net.device), self._layers[0][0])

    def of(self, points: NDArray[np.float64], projected: torch.Tensor) -> NDArray[np.float64]:
        """Stability of each of ``points`` (m, d) under noise from :meth:`project`, m or 1 sets of it; (m,)."""
        x = self._net.tensor(points)
        p = self._net.probability(x)
        first = linear(x.double(), *self._layers[0])
        parts = []
        for i in range(0, len(x), _POINTS_AT_ONCE):
            noise = projected if len(projected) == 1 else projected[i : i + _POINTS_AT_ONCE]
            parts.append(self._spread(first[i : i + _POINTS_AT_ONCE, None] + noise))
        mean, std = torch.cat(parts, dim=1)
        favourable = p >= THRESHOLD if self._includes_half else p > THRESHOLD
        return np.asarray((torch.where(favourable, mean, 1 - mean) - std).cpu().numpy())

    def _spread(self, hidden: torch.Tensor) -> torch.Tensor:
        """Mean and standard deviation (2, m) of the probabilities behind first-layer values (m, samples, width)."""
        shape, hidden = hidden.shape[:2], hidden.flatten(0, 1)
        for weight, bias in self._layers[1:]:
            hidden = linear(hidden.relu_(), weight, bias)
        p = torch.sigmoid(hidden).view(shape).double()
        return torch.stack([p.mean(dim=1), p.std(dim=1, correction=0)])


class Noise:
    """Fresh noise for every call, from a request's stream."""

    def __init__(self, stability: Stability, stream: Stream) -> None:
        self._stability, self.stream = stability, stream

    def next(self, points: int) -> torch.Tensor:
        """Projected noise for ``points`` points."""
        return self.stream.take(("noise", points), lambda g: self._stability.project(g, points))


class CommonNoise(Noise):
    """Common random numbers: one set, drawn at the first call, for all points and steps of a request."""

    def __init__(self, stability: Stability, stream: Stream) -> None:
        super().__init__(stability, stream)
        self._kept: torch.Tensor | None = None

    def next(self, points: int) -> torch.Tensor:
        """The same set each time, whatever the number of points."""
        if self._kept is None:
            self._kept = super().next(1)
        return self._kept
