"""Many networks asked about the same rows at once: one batched computation for each shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.products import product
from geco_ray.cfe.training.layout import common_widths, flatten, layer_shapes, layers

if TYPE_CHECKING:
    import numpy.typing as npt

TILE = 256  # rows per pass; short passes are padded, so an answer does not depend on how many rows are asked together


class StackedModels:
    """Networks on a device, grouped by similar shape; loaded once, asked often.

    Raises:
        ValueError: no networks, or networks with different numbers of inputs.
    """

    def __init__(self, models: Sequence[Mlp], device: torch.device | str = "cpu") -> None:
        if len({model.inputs for model in models}) != 1:
            raise ValueError("the networks must have one number of inputs")
        self.count, self.inputs, self.device = len(models), models[0].inputs, torch.device(device)
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, model in enumerate(models):
            groups.setdefault(common_widths(model.hidden), []).append(index)
        self._groups: list[tuple[list[int], list[torch.Tensor]]] = []
        for widths, members in groups.items():
            shapes = layer_shapes(self.inputs, widths)
            flat = torch.tensor(np.stack([flatten(models[index], shapes) for index in members]), device=self.device)
            matrices = layers(flat, shapes)
            self._groups.append((members, [matrix.transpose(1, 2) for matrix in matrices]))

    def probability(self, x: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
        """Probabilities float32 (n, models) of rows (n, d), which are cast to float32.

        Memory is bounded: rows are taken 256 at a time.
        """
        rows = np.asarray(x, dtype=np.float32)
        if rows.ndim != 2 or rows.shape[1] != self.inputs:
            raise ValueError(f"expected rows of {self.inputs} features, got shape {rows.shape}")
        out = np.empty((len(rows), self.count), dtype=np.float32)
        for low in range(0, len(rows), TILE):
            part = rows[low : low + TILE]
            out[low : low + TILE] = self._tile(part)[:, : len(part)].T
        return out

    def favourable(self, x: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
        """Whether each network decides each row favourably (p >= 0.5), bool (n, models)."""
        return np.asarray(self.probability(x) >= np.float32(0.5))

    @torch.no_grad()
    def _tile(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        inputs = np.zeros((self.inputs + 1, TILE), dtype=np.float32)
        inputs[:-1, : len(rows)], inputs[-1] = rows.T, 1
        first = torch.tensor(inputs, device=self.device)
        out = np.empty((self.count, TILE), dtype=np.float32)
        for members, matrices in self._groups:
            h = first
            for matrix in matrices[:-1]:
                above = torch.ones(len(members), matrix.shape[1] + 1, TILE, device=self.device)
                above[:, :-1] = product(matrix, h)
                h = above.relu_()
            out[members] = torch.sigmoid(product(matrices[-1], h))[:, 0].cpu().numpy()
        return out
