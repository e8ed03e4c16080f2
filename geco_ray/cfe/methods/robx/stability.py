"""RobX's stability of a point, and the two ways to draw its noise."""

from __future__ import annotations

import itertools
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

_ROWS_AT_ONCE = 4096  # noisy points that go through the network together: their hidden layer stays within the cache
_PARTS = (1 / 16, 3 / 16, 7 / 16)  # shares of the samples after which a point may be ruled out
_GROUP = 4  # rows that are summed together: a sum's last bit hangs on it
_MARGIN = 1e-9  # far above the rounding of the bound, far below the spacing of what a thousand samples tell


class Draw:
    """The noise of several points, sent through a first layer part by part as it is asked for.

    Args:
        noise: float64 (points, samples, features) on the device of ``weight``.
        weight: of the first layer, float64 (width, features).
    """

    def __init__(self, noise: torch.Tensor, weight: torch.Tensor) -> None:
        self._noise, self._weight = noise, weight
        self._projected: dict[int, torch.Tensor] = {}

    def part(self, first: int, end: int) -> torch.Tensor:
        """Samples ``first`` to ``end`` behind the layer's weights, (points, end - first, width); not to be changed."""
        if first not in self._projected:
            self._projected[first] = linear(self._noise[:, first:end].contiguous(), self._weight)
        return self._projected[first]


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
        ends = sorted({int(share * samples) for share in _PARTS} - {0} | {samples})
        self._parts = list(itertools.pairwise([0, *ends]))

    def draw(self, generator: np.random.Generator, points: int) -> Draw:
        """The noise of ``points`` points."""
        noise = generator.standard_normal((points, self.samples, self.features))
        noise *= self.std  # in place: these arrays are the largest of the method
        return Draw(torch.from_numpy(noise).to(self._net.device), self._layers[0][0])

    def of(self, points: NDArray[np.float64], noise: Draw, floor: float = -np.inf) -> NDArray[np.float64]:
        """Stability of each of ``points`` (m, d) under ``noise`` of m points, or of 1 for all; (m,).

        A point that can't come above ``floor`` whatever the samples left say is not followed to the end: -inf.
        """
        x = self._net.tensor(points)
        p = self._net.probability(x)
        favourable = p >= THRESHOLD if self._includes_half else p > THRESHOLD
        first, own = linear(x.double(), *self._layers[0]), torch.zeros(len(x), self.samples, dtype=torch.float64)
        own, left = own.to(x.device), torch.arange(len(x), device=x.device)
        for begin, end in self._parts:
            if not len(left):
                break
            own[left, begin:end] = self._probabilities(first[left], noise.part(begin, end), left)
            if np.isfinite(floor) and end < self.samples:
                seen = torch.where(favourable[left, None], own[left, :end], 1 - own[left, :end])
                left = left[highest_stability(seen, self.samples) > floor - _MARGIN]
        result = torch.full((len(x),), -torch.inf, dtype=torch.float64, device=x.device)
        result[left] = self._spread(own, favourable)[left]
        return np.asarray(result.cpu().numpy())

    def _spread(self, own: torch.Tensor, favourable: torch.Tensor) -> torch.Tensor:
        """Mean minus deviation of ``own`` (m, samples), or of 1 - ``own`` where the class is the other one; (m,)."""
        parts = []
        for group in torch.split(own, _GROUP):
            parts.append(torch.stack([group.mean(dim=1), group.std(dim=1, correction=0)]))
        mean, std = torch.cat(parts, dim=1)
        stability: torch.Tensor = torch.where(favourable, mean, 1 - mean) - std
        return stability

    def _probabilities(self, first: torch.Tensor, noise: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Probabilities (k, samples) of points with first-layer values (k, width); ``rows``: whose noise they take."""
        together, found = max(1, _ROWS_AT_ONCE // noise.shape[1]), []
        for i in range(0, len(first), together):
            own = noise if len(noise) == 1 else noise[rows[i : i + together]]
            hidden = first[i : i + together, None] + own
            shape, hidden = hidden.shape[:2], hidden.flatten(0, 1)
            for weight, bias in self._layers[1:]:
                hidden = linear(hidden.relu_(), weight, bias)
            found.append(torch.sigmoid(hidden).view(shape))
        return torch.cat(found)


def highest_stability(seen: torch.Tensor, samples: int) -> torch.Tensor:
    """The largest mean minus standard deviation that rows of values in [0, 1] can come to.

    The values left have their best case when they are all alike, since any spread of theirs only adds to the
    deviation; what they would have to be then is where the derivative vanishes, or 1.

    Args:
        seen: the first values of each row, float64 (k, m), 0 < m < ``samples``.
        samples: how many values a row will have.

    Returns:
        float64 (k,).
    """
    share = seen.shape[1] / samples
    mean, variance = seen.mean(dim=1), seen.var(dim=1, correction=0)
    away = 1 - mean  # how far above the mean of the first ones the others lie
    if share > 0.5:
        away = torch.minimum(away, (variance / (2 * share - 1)).sqrt())
    spread = share * variance + share * (1 - share) * away * away
    return mean + (1 - share) * away - spread.sqrt()


class Noise:
    """Fresh noise for every call, from a request's stream."""

    def __init__(self, stability: Stability, stream: Stream) -> None:
        self._stability, self.stream = stability, stream

    def next(self, points: int) -> Draw:
        """Noise for ``points`` points."""
        return self.stream.take(("noise", points), lambda g: self._stability.draw(g, points))


class CommonNoise(Noise):
    """Common random numbers: one set, drawn at the first call, for all points and steps of a request."""

    def __init__(self, stability: Stability, stream: Stream) -> None:
        super().__init__(stability, stream)
        self._kept: Draw | None = None

    def next(self, points: int) -> Draw:
        """The same set each time, whatever the number of points."""
        if self._kept is None:
            self._kept = super().next(1)
        return self._kept
