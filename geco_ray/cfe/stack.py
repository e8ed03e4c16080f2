"""Many small networks of similar shape trained at once: forward, backward and optimizer as batched matrix products.

Layout: activations are (model, unit, row) with a last unit that is always 1, so a layer with its bias is one batched
product and the bias gradient is a column of the weight gradient. All parameters of a model are one row of a flat
matrix, so the optimizer is a few in-place passes. Work runs over blocks of models and tiles of rows small enough to
stay in a core's cache. Validation rows ride behind the training rows, so the forward pass that starts a step is also
the one that judges the step before. Widths are filled up with units whose weights are 0: their activations and
gradients are 0 for ever, so they change nothing. The views a step needs are made once, and again only when models
have left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from geco_ray.cfe.classifier import Mlp
from geco_ray.cfe.stack_data import flatten, gather, layer_shapes, layers, unflatten
from geco_ray.cfe.stack_optimizer import StackedOptimizer
from geco_ray.cfe.training import EarlyStopping, Pool, Trained, TrainingJob, common_widths

CPU_ROWS, CPU_BLOCK = 512, 4096  # rows per tile; models x rows per block: 1.6 MB of activations at 32-32
CUDA_ROWS, CUDA_BLOCK = 16384, 1 << 20


@dataclass(frozen=True)
class Tile:
    """The views of one block of models and one tile of rows; ``forward`` also covers the tile's validation rows."""

    matrices: list[torch.Tensor]  # weights with bias, (k, out, in + 1)
    inputs: list[torch.Tensor]  # of each layer, with the row of ones
    hidden: list[torch.Tensor]  # activations of the hidden layers, without the row of ones
    logit: torch.Tensor
    val_logit: torch.Tensor
    val_probability: torch.Tensor
    back: Back | None  # none where the tile has validation rows only


@dataclass(frozen=True)
class Back:
    """The views of a tile's training rows."""

    matrices: list[torch.Tensor]  # weights without bias, (k, in, out)
    gradients: list[torch.Tensor]  # (k, in + 1, out)
    inputs: list[torch.Tensor]
    hidden: list[torch.Tensor]
    upstream: list[torch.Tensor]  # gradients at the hidden layers' activations
    deltas: list[torch.Tensor]  # gradients at the layers' pre-activations, transposed; hidden ones overwrite hidden
    logit: torch.Tensor
    probability: torch.Tensor
    error: torch.Tensor
    y: torch.Tensor
    weight: torch.Tensor
    first: bool  # whether gradients are written or added


class Workspace:
    """Buffers for the activations and gradients of one tile, shared by all tiles."""

    def __init__(self, widths: Sequence[int], models: int, rows: int, device: torch.device) -> None:
        def zeros(units: int) -> torch.Tensor:
            return torch.zeros(models, units, rows, device=device)

        self.activations = [zeros(width + 1) for width in widths]
        for buffer in self.activations:
            buffer[:, -1] = 1
        self.upstream = zeros(max(widths, default=0))
        self.logit, self.probability, self.error = zeros(1), zeros(1), zeros(1)


class Stack:
    """Networks of one shape in training; ``alive`` of them still run and lie in front."""

    def __init__(self, jobs: Sequence[TrainingJob], pool: Pool, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self.alive, self.steps = len(jobs), 0
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
        self.space = Workspace(widths, self.block_models, self.tile_rows, self.device)
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
            forward(tile)
            if tile.back is not None:
                backward(tile.back)

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
        return Tile(
            matrices=[matrix.transpose(1, 2) for matrix in layers(self.parameters[models], self.shapes)],
            inputs=[x, *(buffer[:k, :, :r] for buffer in space.activations)],
            hidden=[buffer[:k, :-1, :r] for buffer in space.activations],
            logit=logit,
            val_logit=logit[:, :, trained:],
            val_probability=self.val_probability[models, None, val],
            back=self._back(models, slice(rows.start, rows.start + trained)) if trained else None,
        )

    def _back(self, models: slice, rows: slice) -> Back:
        k, r = models.stop - models.start, rows.stop - rows.start
        space, data = self.space, self.rows
        hidden = [buffer[:k, :-1, :r] for buffer in space.activations]
        error = space.error[:k, :, :r]
        return Back(
            matrices=[matrix[:, :-1] for matrix in layers(self.parameters[models], self.shapes)],
            gradients=layers(self.gradients[models], self.shapes),
            inputs=[data.block(data.x, models)[:, :, rows], *(buffer[:k, :, :r] for buffer in space.activations)],
            hidden=hidden,
            upstream=[space.upstream[:k, : value.shape[1], :r] for value in hidden],
            deltas=[value.transpose(1, 2) for value in (*hidden, error)],
            logit=space.logit[:k, :, :r],
            probability=space.probability[:k, :, :r],
            error=error,
            y=data.block(data.y, models)[:, None, rows],
            weight=data.block(data.weight, models)[:, None, rows],
            first=rows.start == 0,
        )


def forward(tile: Tile) -> None:
    """Logits of a tile, and probabilities of its validation rows."""
    for matrix, value, hidden in zip(tile.matrices, tile.inputs, tile.hidden, strict=False):
        torch.bmm(matrix, value, out=hidden)
        hidden.relu_()
    torch.bmm(tile.matrices[-1], tile.inputs[-1], out=tile.logit)
    if tile.val_logit.shape[2]:
        torch.sigmoid(tile.val_logit, out=tile.val_probability)


def backward(back: Back) -> None:
    """Gradients of the weighted mean cross-entropy, by the formulas of torch's BCELoss and sigmoid."""
    aten = torch.ops.aten
    p, error = back.probability, back.error
    torch.sigmoid(back.logit, out=p)
    aten.binary_cross_entropy_backward.grad_input(back.weight, p, back.y, None, 0, grad_input=error)
    aten.sigmoid_backward.grad_input(error, p, grad_input=error)
    delta = error
    for layer in range(len(back.matrices) - 1, -1, -1):
        if back.first:
            torch.bmm(back.inputs[layer], back.deltas[layer], out=back.gradients[layer])
        else:
            back.gradients[layer].baddbmm_(back.inputs[layer], back.deltas[layer])
        if layer:
            above, hidden = back.upstream[layer - 1], back.hidden[layer - 1]
            if delta is error:
                torch.mul(back.matrices[layer], delta, out=above)
            else:
                torch.bmm(back.matrices[layer], delta, out=above)
            aten.threshold_backward.grad_input(above, hidden, 0, grad_input=hidden)
            delta = hidden


@torch.no_grad()
def train_group(jobs: Sequence[TrainingJob], pool: Pool, device: torch.device | str) -> list[Trained]:
    """Train jobs of similar shape and one kind of optimizer in one stack; results in the order of ``jobs``.

    Raises:
        ValueError: a network's loss is not finite from the first epoch on.
    """
    stack = Stack(jobs, pool, device)
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
