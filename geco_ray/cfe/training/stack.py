"""Many small networks of similar shape trained at once: forward, backward and optimizer as batched matrix products.

Layout: activations are (model, unit, row) with a last unit that is always 1, so a layer with its bias is one batched
product and the bias gradient is a column of the weight gradient. All parameters of a model are one row of a flat
matrix, so the optimizer is a few in-place passes. Work runs over blocks of models and tiles of rows small enough to
stay in a core's cache. Validation rows ride behind the training rows, so the forward pass that starts a step is also
the one that judges the step before. Widths are filled up with units whose weights are 0: their activations and
gradients are 0 for ever, so they change nothing. On the CPU the products are NumPy's (on views of the same memory): its
BLAS is the quicker one on small matrices, and takes them one by one, so a network's bits do not depend on the others.
The views a step needs are made once, and again only when models have left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from geco_ray.arithmetic import one_blas_thread
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.training.job import EarlyStopping, Pool, Trained, TrainingJob
from geco_ray.cfe.training.layout import common_widths, flatten, gather, layer_shapes, layers, unflatten
from geco_ray.cfe.training.optimizer import StackedOptimizer

CPU_ROWS, CPU_BLOCK = 512, 4096  # rows per tile; models x rows per block: 1.6 MB of activations at 32-32
CUDA_ROWS, CUDA_BLOCK = 16384, 1 << 20
NUMPY_ON_CPU = True  # off, the CPU goes the GPU's way


Product = Callable[..., Any]
Operand = Any  # of a matrix product: a NumPy view on the CPU, else the tensor itself


@dataclass(frozen=True)
class Tile:
    """The views of one block of models and one tile of rows; ``forward`` also covers the tile's validation rows."""

    matrices: list[Operand]  # weights with bias, (k, out, in + 1)
    inputs: list[Operand]  # of each layer, with the row of ones
    outputs: list[Operand]  # of each layer: hidden and logit
    hidden: list[torch.Tensor]  # activations of the hidden layers, without the row of ones
    logit: torch.Tensor
    val_logit: torch.Tensor
    val_probability: torch.Tensor
    back: Back | None  # none where the tile has validation rows only


@dataclass(frozen=True)
class Back:
    """The views of a tile's training rows."""

    matrices: list[Operand]  # weights without bias, (k, in, out)
    gradients: list[Operand]  # (k, in + 1, out)
    partial: list[Operand]  # a tile's share of the gradients
    inputs: list[Operand]
    deltas: list[Operand]  # gradients at the layers' pre-activations; the hidden ones overwrite hidden
    transposed: list[Operand]  # deltas, (k, rows, out)
    upstream: list[Operand]  # gradients at the hidden layers' activations
    hidden: list[torch.Tensor]
    above: list[torch.Tensor]  # upstream
    last: torch.Tensor  # the last layer's weights without bias
    logit: torch.Tensor
    probability: torch.Tensor
    error: torch.Tensor
    y: torch.Tensor
    weight: torch.Tensor
    first: bool  # whether gradients are written or added


class Workspace:
    """Buffers for the activations and gradients of one tile, shared by all tiles."""

    def __init__(self, widths: Sequence[int], models: int, rows: int, parameters: int, device: torch.device) -> None:
        def zeros(units: int) -> torch.Tensor:
            return torch.zeros(models, units, rows, device=device)

        self.activations = [zeros(width + 1) for width in widths]
        for buffer in self.activations:
            buffer[:, -1] = 1
        self.upstream = zeros(max(widths, default=0))
        self.logit, self.probability, self.error = zeros(1), zeros(1), zeros(1)
        self.partial = torch.zeros(models, parameters, device=device)


class Stack:
    """Networks of one shape in training; ``alive`` of them still run and lie in front."""

    def __init__(self, jobs: Sequence[TrainingJob], pool: Pool, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self.alive, self.steps = len(jobs), 0
        self.numpy = NUMPY_ON_CPU and self.device.type == "cpu"
        self.product: Product = np.matmul if self.numpy else torch.bmm
        widths = common_widths(jobs[0].initial.hidden)
        self.shapes = layer_shapes(jobs[0].initial.inputs, widths)
        flat = np.stack([flatten(job.initial, self.shapes) for job in jobs])
        self.parameters = torch.tensor(flat, device=self.device)
        self.gradients = torch.zeros_like(self.parameters)
        self.optimizer = StackedOptimizer([job.settings for job in jobs], self.parameters)
        self.best = self.parameters.clone()
        self.rows = gather(jobs, pool, self.device)
        self.val_y = torch.tensor(pool.val_y, dtype=torch.float32, device=self.device)
        length = self.rows.x.shape[2]
        most, block = (CPU_ROWS, CPU_BLOCK) if self.device.type == "cpu" else (CUDA_ROWS, CUDA_BLOCK)
        self.tile_rows = min(most, length)
        self.block_models = min(self.alive, max(1, block // self.tile_rows))
        self.space = Workspace(widths, self.block_models, self.tile_rows, self.parameters.shape[1], self.device)
        self.val_probability = torch.zeros(self.alive, length - self.rows.training, device=self.device)
        self.val_terms = torch.zeros(self.alive, len(pool.val_y), device=self.device)
        self.blocks: dict[tuple[int, int], list[Tile]] = {}
        self.plan()

    def plan(self) -> None:
        """Make the views that each step of the running models needs; blocks that are still full keep theirs."""
        blocks = {}
        for low in range(0, self.alive, self.block_models):
            key = (low, min(low + self.block_models, self.alive))
            blocks[key] = self.blocks.get(key) or self._tiles(slice(*key))
        self.blocks = blocks
        self.tiles = [tile for tiles in blocks.values() for tile in tiles]

    def evaluate(self) -> None:
        """Gradients of the running models' training losses, and their probabilities of the validation rows."""
        for tile in self.tiles:
            forward(tile, self.product)
            if tile.back is not None:
                backward(tile.back, self.product)

    def step(self) -> None:
        """One update of every running model."""
        self.steps += 1
        k = self.alive
        self.optimizer.step(self.parameters[:k], self.gradients[:k], self.steps)

    def validation_losses(self) -> list[float]:
        """Mean validation loss of each running model, as it was evaluated."""
        terms = self.val_terms[: self.alive]
        probability, target = self.val_probability[: self.alive, : terms.shape[1]], self.val_y.expand_as(terms)
        torch.ops.aten.binary_cross_entropy.out(probability, target, None, 0, out=terms)
        losses: list[float] = terms.mean(dim=1).tolist()
        return losses

    def keep(self, better: Sequence[bool]) -> None:
        """Store the weights of the running models marked ``better``."""
        k = self.alive
        if all(better):
            self.best[:k].copy_(self.parameters[:k])
        elif any(better):
            mask = torch.tensor(better, device=self.device)[:, None]
            torch.where(mask, self.parameters[:k], self.best[:k], out=self.best[:k])

    def drop(self, place: int) -> None:
        """Let the last running model take the place of a finished one."""
        self.alive -= 1
        last = self.alive
        if place == last:
            return
        for state in (self.parameters, self.gradients, self.best, *self.optimizer.state):
            state[place].copy_(state[last])
        self.rows.move(last, place)

    def best_model(self, place: int, hidden: Sequence[int]) -> Mlp:
        """The stored network of a running model, without the units that only fill up its stack."""
        return unflatten(self.best[place].cpu().numpy(), self.shapes, hidden)

    def _tiles(self, models: slice) -> list[Tile]:
        length = self.rows.x.shape[2]
        return [
            self._tile(models, slice(low, min(low + self.tile_rows, length)))
            for low in range(0, length, self.tile_rows)
        ]

    def _tile(self, models: slice, rows: slice) -> Tile:
        k, r = models.stop - models.start, rows.stop - rows.start
        space, training = self.space, self.rows.training
        x = self.rows.block(self.rows.x, models)[:, :, rows]
        logit = space.logit[:k, :, :r]
        trained = min(r, max(0, training - rows.start))  # rows of this tile that are trained on
        val = slice(max(0, rows.start - training), max(0, rows.stop - training))
        hidden = [buffer[:k, :-1, :r] for buffer in space.activations]
        return Tile(
            matrices=self._operands(matrix.transpose(1, 2) for matrix in layers(self.parameters[models], self.shapes)),
            inputs=self._operands([x, *(buffer[:k, :, :r] for buffer in space.activations)]),
            outputs=self._operands([*hidden, logit]),
            hidden=hidden,
            logit=logit,
            val_logit=logit[:, :, trained:],
            val_probability=self.val_probability[models, None, val],
            back=self._back(models, slice(rows.start, rows.start + trained)) if trained else None,
        )

    def _operands(self, tensors: Iterable[torch.Tensor]) -> list[Operand]:
        return [tensor.numpy() if self.numpy else tensor for tensor in tensors]

    def _back(self, models: slice, rows: slice) -> Back:
        k, r = models.stop - models.start, rows.stop - rows.start
        space, data = self.space, self.rows
        hidden = [buffer[:k, :-1, :r] for buffer in space.activations]
        error = space.error[:k, :, :r]
        above = [space.upstream[:k, : value.shape[1], :r] for value in hidden]
        matrices = [matrix[:, :-1] for matrix in layers(self.parameters[models], self.shapes)]
        x = data.block(data.x, models)[:, :, rows]
        return Back(
            matrices=self._operands(matrices),
            gradients=self._operands(layers(self.gradients[models], self.shapes)),
            partial=self._operands(layers(space.partial[:k], self.shapes)),
            inputs=self._operands([x, *(buffer[:k, :, :r] for buffer in space.activations)]),
            deltas=self._operands([*hidden, error]),
            transposed=self._operands(value.transpose(1, 2) for value in (*hidden, error)),
            upstream=self._operands(above),
            hidden=hidden,
            above=above,
            last=matrices[-1],
            logit=space.logit[:k, :, :r],
            probability=space.probability[:k, :, :r],
            error=error,
            y=data.block(data.y, models)[:, None, rows],
            weight=data.block(data.weight, models)[:, None, rows],
            first=rows.start == 0,
        )


def forward(tile: Tile, product: Product) -> None:
    """Logits of a tile, and probabilities of its validation rows."""
    for layer, hidden in enumerate(tile.hidden):
        product(tile.matrices[layer], tile.inputs[layer], out=tile.outputs[layer])
        hidden.relu_()
    product(tile.matrices[-1], tile.inputs[-1], out=tile.outputs[-1])
    if tile.val_logit.shape[2]:
        torch.sigmoid(tile.val_logit, out=tile.val_probability)


def backward(back: Back, product: Product) -> None:
    """Gradients of the weighted mean cross-entropy, by the formulas of torch's BCELoss and sigmoid."""
    aten = torch.ops.aten
    p, error = back.probability, back.error
    torch.sigmoid(back.logit, out=p)
    aten.binary_cross_entropy_backward.grad_input(back.weight, p, back.y, None, 0, grad_input=error)
    aten.sigmoid_backward.grad_input(error, p, grad_input=error)
    last = len(back.matrices) - 1
    for layer in range(last, -1, -1):
        gradient = back.gradients[layer]
        if back.first:
            product(back.inputs[layer], back.transposed[layer], out=gradient)
        else:
            product(back.inputs[layer], back.transposed[layer], out=back.partial[layer])
            gradient += back.partial[layer]
        if layer:
            above, hidden = back.above[layer - 1], back.hidden[layer - 1]
            if layer == last:
                torch.mul(back.last, error, out=above)
            else:
                product(back.matrices[layer], back.deltas[layer], out=back.upstream[layer - 1])
            aten.threshold_backward.grad_input(above, hidden, 0, grad_input=hidden)


def train_group(jobs: Sequence[TrainingJob], pool: Pool, device: torch.device | str) -> list[Trained]:
    """Train jobs of similar shape and one kind of optimizer in one stack; results in the order of ``jobs``.

    Raises:
        ValueError: a network's loss is not finite from the first epoch on.
    """
    with torch.no_grad(), one_blas_thread():
        return _train(Stack(jobs, pool, device), jobs)


def _train(stack: Stack, jobs: Sequence[TrainingJob]) -> list[Trained]:
    running = [(index, EarlyStopping(job.settings)) for index, job in enumerate(jobs)]
    results: dict[int, Trained] = {}
    stack.evaluate()
    while True:
        stack.step()
        stack.evaluate()
        losses = stack.validation_losses()
        stack.keep([rule.update(loss) for (_, rule), loss in zip(running, losses, strict=True)])
        finished = [place for place, (_, rule) in enumerate(running) if rule.done]
        for place in reversed(finished):
            index, rule = running[place]
            if not rule.best_epoch:
                raise ValueError("training diverged: no epoch had a finite validation loss")
            results[index] = Trained(
                stack.best_model(place, jobs[index].initial.hidden), rule.epoch, rule.best_epoch, rule.best
            )
            stack.drop(place)
            running[place] = running[-1]
            running.pop()
        if not running:
            return [results[index] for index in range(len(jobs))]
        if finished:
            stack.plan()
