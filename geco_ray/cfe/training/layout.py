"""How the data and the parameters of a stack of networks lie in memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from geco_ray.cfe.mlp import Mlp

if TYPE_CHECKING:
    import numpy.typing as npt

    from geco_ray.cfe.training.job import Pool, TrainingJob


@dataclass
class Rows:
    """Inputs (k or 1, d + 1, m + v) with a last row of ones, targets and weights (k or 1, m); 1 where models share.

    The first m = ``training`` rows are trained on, the others are the validation rows.
    """

    x: torch.Tensor
    y: torch.Tensor
    weight: torch.Tensor
    training: int

    def move(self, source: int, target: int) -> None:
        """Put model ``source``'s rows in the place of ``target``'s."""
        for tensor in (self.x, self.y, self.weight):
            if tensor.shape[0] > 1:
                tensor[target].copy_(tensor[source])

    def block(self, tensor: torch.Tensor, models: slice) -> torch.Tensor:
        """The models' part of a tensor, repeated without copying where it is shared."""
        if tensor.shape[0] > 1:
            return tensor[models]
        return tensor.expand(models.stop - models.start, *tensor.shape[1:])


def gather(jobs: Sequence[TrainingJob], pool: Pool, device: torch.device) -> Rows:
    """The jobs' rows; a row drawn several times stands once with its count as weight, short jobs end in weight 0."""
    drawn = [distinct(job) for job in jobs]
    length = padded(max(len(rows) for rows, _, _ in drawn))
    rows = np.zeros((len(jobs), length), dtype=np.int64)
    y = np.zeros((len(jobs), length), dtype=np.float32)
    weight = np.zeros((len(jobs), length), dtype=np.float32)
    for model, (positions, targets, counts) in enumerate(drawn):
        rows[model, : len(positions)] = positions
        y[model, : len(positions)] = targets
        weight[model, : len(positions)] = counts / counts.sum()
    if (rows == rows[0]).all():
        rows = rows[:1]
    x = np.zeros((len(rows), pool.x.shape[1] + 1, length + padded(len(pool.val_x))), dtype=np.float32)
    x[:, -1] = 1
    x[:, :-1, :length] = pool.x[rows].transpose(0, 2, 1)
    x[:, :-1, length : length + len(pool.val_x)] = pool.val_x.T
    tensors = [torch.tensor(array, device=device) for array in (x, y, weight)]
    return Rows(tensors[0], tensors[1], tensors[2], training=length)


def distinct(job: TrainingJob) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Distinct (row, label) pairs of a job and how often each is drawn; in the order given if none repeats."""
    pairs, counts = np.unique(job.rows * 2 + job.labels, return_counts=True)
    if len(pairs) == len(job.rows):
        return job.rows, job.labels, np.ones(len(job.rows), dtype=np.int64)
    return pairs // 2, pairs % 2, counts


def layer_shapes(inputs: int, hidden: Sequence[int]) -> list[tuple[int, int]]:
    """(out, in) of each layer of a network with these hidden widths."""
    widths = [inputs, *hidden, 1]
    return [(fan_out, fan_in) for fan_in, fan_out in itertools.pairwise(widths)]


def flatten(model: Mlp, shapes: Sequence[tuple[int, int]]) -> npt.NDArray[np.float32]:
    """All parameters as one row: per layer the matrix (in + 1, out) whose last row is the bias, zeros around it."""
    parts = []
    for weight, bias, (out, fan_in) in zip(model.weights, model.biases, shapes, strict=True):
        both = np.zeros((fan_in + 1, out), dtype=np.float32)
        both[: weight.shape[1], : weight.shape[0]] = weight.T
        both[-1, : len(bias)] = bias
        parts.append(both.ravel())
    return np.concatenate(parts)


def unflatten(row: npt.NDArray[np.float32], shapes: Sequence[tuple[int, int]], hidden: Sequence[int]) -> Mlp:
    """The network of the given hidden widths whose parameters :func:`flatten` gave."""
    weights, biases, start = [], [], 0
    inputs = shapes[0][1]
    for (out, fan_in), (own_out, own_in) in zip(shapes, layer_shapes(inputs, hidden), strict=True):
        both = row[start : start + out * (fan_in + 1)].reshape(fan_in + 1, out)
        weights.append(both[:own_in, :own_out].T.copy())
        biases.append(both[-1, :own_out].copy())
        start += both.size
    return Mlp(tuple(weights), tuple(biases))


def layers(flat: torch.Tensor, shapes: Sequence[tuple[int, int]]) -> list[torch.Tensor]:
    """Views (k, in + 1, out) of the layers in flat parameters (k, p)."""
    views, start = [], 0
    for out, fan_in in shapes:
        views.append(flat[:, start : start + out * (fan_in + 1)].view(len(flat), fan_in + 1, out))
        start += out * (fan_in + 1)
    return views


def common_widths(hidden: Sequence[int]) -> tuple[int, ...]:
    """Hidden widths filled up to powers of two from 16, so that small networks of several shapes share a stack."""
    return tuple(max(16, 1 << (width - 1).bit_length()) for width in hidden)


def padded(rows: int) -> int:
    """Number of rows with padding: full cache lines (32 rows) for the products, steps of about 1/16 to share stacks."""
    step = max(32, 1 << max(0, rows.bit_length() - 5))
    return -(-rows // step) * step
