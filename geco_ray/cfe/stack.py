"""Many small networks of one shape trained at once: forward, backward and optimizer as batched matrix products.

Layout: activations are (model, unit, row) with a last unit that is always 1, so a layer with its bias is one batched
product and the bias gradient is a column of the weight gradient. All parameters of a model are one row of a flat
matrix, so the optimizer is a few in-place passes. Work runs over blocks of models and tiles of rows small enough to
stay in a core's cache; the views a step needs are made once, and again only when finished models have left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from geco_ray.cfe.classifier import Mlp
from geco_ray.cfe.stack_data import Rows, flatten, gather, layers, shared_rows, unflatten
from geco_ray.cfe.training import BETAS, EPSILON, EarlyStopping, Pool, Trained, TrainingJob

CPU_ROWS, CPU_BLOCK = 512, 2048  # rows per tile; models x rows per block: its activations fill half of 1 MiB
CUDA_ROWS, CUDA_BLOCK = 16384, 1 << 20


@dataclass(frozen=True)
class Tile:
    """The views of one block of models and one tile of rows."""

    forward: list[torch.Tensor]  # weights with bias, (k, out, in + 1)
    backward: list[torch.Tensor]  # weights without bias, (k, in, out)
    gradients: list[torch.Tensor]  # (k, in + 1, out)
    inputs: list[torch.Tensor]  # of each layer, with the row of ones
    hidden: list[torch.Tensor]  # activations of the hidden layers, without the row of ones
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
        self.alive = len(jobs)
        self.settings = [job.settings for job in jobs]
        first = jobs[0].initial
        self.shapes = [weight.shape for weight in first.weights]
        self.parameters = torch.tensor(np.stack([flatten(job.initial) for job in jobs]), device=self.device)
        self.gradients = torch.zeros_like(self.parameters)
        self.first_moment = torch.zeros_like(self.parameters)
        self.second_moment = torch.zeros_like(self.parameters)
        self.scratch = torch.zeros_like(self.parameters)
        self.best = self.parameters.clone()
        self.rate = torch.tensor([[s.learning_rate] for s in self.settings], dtype=torch.float64, device=self.device)
        self.decay = torch.tensor([[s.weight_decay] for s in self.settings], device=self.device)
        self.decays = any(s.weight_decay for s in self.settings)
        self.adam = self.settings[0].optimizer == "adam"
        self.train = gather(jobs, pool, self.device)
        self.val = shared_rows(pool.val_x, self.device)
        self.val_y = torch.tensor(pool.val_y, dtype=torch.float32, device=self.device)
        on_cpu = self.device.type == "cpu"
        self.tile_rows, block = (CPU_ROWS, CPU_BLOCK) if on_cpu else (CUDA_ROWS, CUDA_BLOCK)
        longest = max(self.train.x.shape[2], self.val.x.shape[2])
        self.tile_rows = min(self.tile_rows, longest)
        self.block_models = min(self.alive, max(1, block // self.tile_rows))
        self.space = Workspace(first.hidden, self.block_models, self.tile_rows, self.device)
        self.val_probability = torch.zeros(self.alive, self.val.x.shape[2], device=self.device)
        self.val_terms = torch.zeros(self.alive, len(self.val_y), device=self.device)
        self.steps = 0
        self.blocks: dict[tuple[int, int], tuple[list[tuple[slice, Tile]], list[tuple[slice, Tile]]]] = {}
        self.plan()

    def plan(self) -> None:
        """Make the views that each step of the running models needs; blocks that are still full keep theirs."""
        blocks = {}
        for low in range(0, self.alive, self.block_models):
            models = slice(low, min(low + self.block_models, self.alive))
            key = (models.start, models.stop)
            blocks[key] = self.blocks.get(key) or (self._tiles(self.train, models), self._tiles(self.val, models))
        self.blocks = blocks
        self.train_tiles = [tile for tiles, _ in blocks.values() for _, tile in tiles]
        self.val_tiles = []
        for (start, stop), (_, tiles) in blocks.items():
            self.val_tiles += [(tile, self.val_probability[start:stop, None, rows]) for rows, tile in tiles]

    def step(self) -> None:
        """One update of every running model."""
        for tile in self.train_tiles:
            forward(tile)
            backward(tile)
        self.steps += 1
        k = self.alive
        p, g, m = self.parameters[:k], self.gradients[:k], self.first_moment[:k]
        if self.decays:
            g.addcmul_(p, self.decay[:k])
        if not self.adam:
            m.mul_(self.settings[0].momentum).add_(g)
            p.addcmul_(m, (-self.rate[:k]).float())
            return
        v, t = self.second_moment[:k], self.scratch[:k]
        m.lerp_(g, 1 - BETAS[0])
        v.mul_(BETAS[1]).addcmul_(g, g, value=1 - BETAS[1])
        torch.sqrt(v, out=t)
        t.div_((1 - BETAS[1] ** self.steps) ** 0.5).add_(EPSILON)
        torch.div(m, t, out=t)
        p.addcmul_(t, (self.rate[:k] / -(1 - BETAS[0] ** self.steps)).float())

    def validation_losses(self) -> list[float]:
        """Mean validation loss of each running model."""
        for tile, probability in self.val_tiles:
            forward(tile)
            torch.sigmoid(tile.logit, out=probability)
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
        for state in (self.parameters, self.first_moment, self.second_moment, self.best, self.rate, self.decay):
            state[place].copy_(state[last])
        self.train.move(last, place)

    def best_model(self, place: int) -> Mlp:
        """The stored network of a running model."""
        return unflatten(self.best[place].cpu().numpy(), self.shapes)

    def _tiles(self, data: Rows, models: slice) -> list[tuple[slice, Tile]]:
        length = data.x.shape[2]
        parts = [slice(low, min(low + self.tile_rows, length)) for low in range(0, length, self.tile_rows)]
        return [(rows, self._tile(data, models, rows)) for rows in parts]

    def _tile(self, data: Rows, models: slice, rows: slice) -> Tile:
        k, r = models.stop - models.start, rows.stop - rows.start
        space = self.space
        weights = layers(self.parameters[models], self.shapes)
        inputs = [data.block(data.x, models)[:, :, rows], *(buffer[:k, :, :r] for buffer in space.activations)]
        hidden = [buffer[:k, :-1, :r] for buffer in space.activations]
        error = space.error[:k, :, :r]
        return Tile(
            forward=[weight.transpose(1, 2) for weight in weights],
            backward=[weight[:, :-1] for weight in weights],
            gradients=layers(self.gradients[models], self.shapes),
            inputs=inputs,
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
    """Logits of a tile."""
    for weight, value, hidden in zip(tile.forward, tile.inputs, tile.hidden, strict=False):
        torch.bmm(weight, value, out=hidden)
        hidden.relu_()
    torch.bmm(tile.forward[-1], tile.inputs[-1], out=tile.logit)


def backward(tile: Tile) -> None:
    """Gradients of the weighted mean cross-entropy, as torch's BCELoss of a sigmoid gives them."""
    p, error, q = tile.probability, tile.error, tile.logit
    torch.sigmoid(tile.logit, out=p)
    torch.sub(p, tile.y, out=error)
    error.mul_(tile.weight)
    # BCELoss divides by max(p (1 - p), 1e-12) and the sigmoid multiplies by p (1 - p): saturated rows give nothing.
    torch.addcmul(p, p, p, value=-1, out=q)
    torch.clamp_min(q, 1e-12, out=p)
    error.mul_(q).div_(p)
    delta = error
    for layer in range(len(tile.forward) - 1, -1, -1):
        if tile.first:
            torch.bmm(tile.inputs[layer], tile.deltas[layer], out=tile.gradients[layer])
        else:
            tile.gradients[layer].baddbmm_(tile.inputs[layer], tile.deltas[layer])
        if layer:
            above, hidden = tile.upstream[layer - 1], tile.hidden[layer - 1]
            if delta is error:
                torch.mul(tile.backward[layer], delta, out=above)
            else:
                torch.bmm(tile.backward[layer], delta, out=above)
            torch.ops.aten.threshold_backward.grad_input(above, hidden, 0, grad_input=hidden)
            delta = hidden


@torch.no_grad()
def train_group(jobs: Sequence[TrainingJob], pool: Pool, device: torch.device | str) -> list[Trained]:
    """Train jobs of one shape and one kind of optimizer in one stack; results in the order of ``jobs``.

    Raises:
        ValueError: a network's loss is not finite from the first epoch on.
    """
    stack = Stack(jobs, pool, device)
    running = [(index, EarlyStopping(job.settings)) for index, job in enumerate(jobs)]
    results: dict[int, Trained] = {}
    while running:
        stack.step()
        losses = stack.validation_losses()
        stack.keep([rule.update(loss) for (_, rule), loss in zip(running, losses, strict=True)])
        finished = [place for place, (_, rule) in enumerate(running) if rule.done]
        for place in reversed(finished):
            index, rule = running[place]
            if not rule.best_epoch:
                raise ValueError("training diverged: no epoch had a finite validation loss")
            results[index] = Trained(stack.best_model(place), rule.epoch, rule.best_epoch, rule.best)
            stack.drop(place)
            running[place] = running[-1]
            running.pop()
        if finished:
            stack.plan()
    return [results[index] for index in range(len(jobs))]
