"""What a training keeps between epochs, so that one that is killed goes on and ends with the same bytes.

A checkpoint is one safetensors file: parameters, Adam's moments, the best parameters so far, the states of all random
generators, and, as JSON in its metadata, the epoch, the curves and what the training is. It is written whole after each
epoch. One that is damaged, or of another training, is no checkpoint: the training starts from the beginning.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from geco_ray.geco.fitting import EpochRecord, Moving, Progress

FORMAT = 1


class ByteKeeper:
    """Keeps one training's checkpoint as bytes; a :class:`~geco_ray.geco.fitting.Keeper`.

    Args:
        load: gives the bytes that were stored last, or None.
        store: replaces them, in one step.
    """

    def __init__(self, load: Callable[[], bytes | None], store: Callable[[bytes], None]) -> None:
        self._load, self._store = load, store

    def restore(self, moving: Moving) -> Progress | None:
        """See :class:`~geco_ray.geco.fitting.Keeper`."""
        data = self._load()
        return None if data is None else unpack(data, moving)

    def save(self, progress: Progress, moving: Moving) -> None:
        """See :class:`~geco_ray.geco.fitting.Keeper`."""
        self._store(pack(progress, moving))


def pack(progress: Progress, moving: Moving) -> bytes:
    """A checkpoint's bytes."""
    tensors: dict[str, Tensor] = {}
    for index, (parameter, best) in enumerate(zip(moving.parameters, progress.best, strict=True)):
        tensors[f"parameter.{index}"] = parameter
        tensors[f"best.{index}"] = best
        for name, value in moving.optimizer.state[parameter].items():
            tensors[f"adam.{index}.{name}"] = value
    for index, generator in enumerate(moving.generators):
        tensors[f"generator.{index}"] = generator.get_state()
    fields = {
        "format": FORMAT,
        "identity": dict(moving.identity),
        "epoch": progress.epoch,
        "best_epoch": progress.best_epoch,
        "best_loss": progress.best_loss if math.isfinite(progress.best_loss) else None,
        "history": [asdict(record) for record in progress.history],
    }
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return bytes(save_tensors(whole, metadata={"geco_ray": json.dumps(fields, sort_keys=True)}))


def unpack(data: bytes, moving: Moving) -> Progress | None:
    """Put a training back to where ``data`` says it was; None, and nothing is changed, if that is another training.

    Args:
        data: anything; what is no checkpoint of this training is refused by its content.
    """
    try:
        size = int.from_bytes(data[:8], "little")
        fields = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["geco_ray"])
        if fields["format"] != FORMAT or fields["identity"] != json.loads(json.dumps(dict(moving.identity))):
            return None
        tensors = load_tensors(data)
        progress = _progress(fields, tensors, moving)
        states = [tensors[f"generator.{index}"] for index in range(len(moving.generators))]
        for generator, state in zip(moving.generators, states, strict=True):
            torch.Generator(device=generator.device).set_state(state)  # on one that nobody needs: it may not fit
    except (ValueError, KeyError, TypeError, RuntimeError, RecursionError, SafetensorError):
        return None
    _restore(tensors, moving)
    for generator, state in zip(moving.generators, states, strict=True):
        generator.set_state(state)
    return progress


def _progress(fields: Mapping[str, Any], tensors: Mapping[str, Tensor], moving: Moving) -> Progress:
    """What a checkpoint says, with its best parameters on the training's device.

    Raises:
        KeyError, TypeError, ValueError: it is not one of this training.
    """
    best = []
    for index, parameter in enumerate(moving.parameters):
        shapes = {tensors[f"{kind}.{index}"].shape for kind in ("parameter", "best")}
        shapes |= {tensors[f"adam.{index}.{name}"].shape for name in ("exp_avg", "exp_avg_sq")}
        if shapes != {parameter.shape}:
            raise ValueError("a parameter, or what Adam keeps of it, has another shape")
        best.append(tensors[f"best.{index}"].to(parameter.device))
    loss = math.inf if fields["best_loss"] is None else float(fields["best_loss"])
    history = tuple(EpochRecord(**record) for record in fields["history"])
    return Progress(int(fields["epoch"]), int(fields["best_epoch"]), loss, best, history)


def _restore(tensors: Mapping[str, Tensor], moving: Moving) -> None:
    with torch.no_grad():
        for index, parameter in enumerate(moving.parameters):
            parameter.copy_(tensors[f"parameter.{index}"])
            mine = f"adam.{index}."
            state = {name.removeprefix(mine): value for name, value in tensors.items() if name.startswith(mine)}
            moving.optimizer.state[parameter] = {name: value.to(parameter.device) for name, value in state.items()}
