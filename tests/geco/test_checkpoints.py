"""A training that is stopped after any epoch, or within one, goes on and ends with the bytes of one that was not."""

from __future__ import annotations

import dataclasses
import json
import struct
from typing import Any

import pytest
import torch
from safetensors.torch import load, save

from geco_ray.geco.checkpoints import ByteKeeper
from geco_ray.geco.encoders import EncoderSource
from geco_ray.geco.fitting import EpochRecord, Part, Recipe, fit
from geco_ray.geco.paradigms.base import PARADIGMS, TrainingSetup
from geco_ray.geco.protocol import resolve_protocol
from geco_ray.geco.tokens import TaskTokens

CPU = torch.device("cpu")


class Memory:
    """Keeps bytes; ``stop_after`` raises when that many checkpoints have been stored."""

    def __init__(self, data: bytes | None = None, stop_after: int | None = None) -> None:
        self.data, self.stored, self._stop = data, 0, stop_after

    def load(self) -> bytes | None:
        return self.data

    def store(self, data: bytes) -> None:
        self.data, self.stored = data, self.stored + 1
        if self.stored == self._stop:
            raise KeyboardInterrupt

    def keeper(self) -> ByteKeeper:
        return ByteKeeper(self.load, self.store)


def recipe(**changes: Any) -> Recipe:
    plain = Recipe(6, 4, 0.05, 0.0, 1e-8, accumulate=False, clip_before_step=True, mean_over_rows=True)
    return dataclasses.replace(plain, **changes)


def trained(memory: Memory | None, how: Recipe | None = None, epochs: list[int] | None = None) -> tuple[Any, ...]:
    """A small noisy training: its weights, the best epoch and the curves."""
    start = torch.Generator().manual_seed(7)
    x, y = torch.randn(30, 5, generator=start), torch.arange(30) % 3
    weight = torch.nn.Parameter(torch.randn(5, 3, generator=start))
    noise = torch.Generator().manual_seed(8)

    def forward(inputs: tuple[torch.Tensor, ...], training: bool) -> torch.Tensor:
        (rows,) = inputs
        return (rows + torch.randn(rows.shape, generator=noise) if training else rows) @ weight

    def tell(record: EpochRecord) -> None:
        if epochs is not None:
            epochs.append(record.epoch)

    shuffles = torch.Generator().manual_seed(9)
    best, history = fit(
        [weight], forward, Part((x[:20],), y[:20]), Part((x[20:],), y[20:]), how or recipe(), shuffles,
        others=(noise,), keeper=memory.keeper() if memory else None, on_epoch=tell,
    )  # fmt: skip
    return weight.detach().numpy().tobytes(), best, history


@pytest.mark.parametrize("stop", range(1, 7))
def test_a_training_stopped_after_any_epoch_ends_as_one_that_was_not(stop: int) -> None:
    memory, epochs = Memory(stop_after=stop), []  # type: ignore[var-annotated]
    with pytest.raises(KeyboardInterrupt):
        trained(memory)
    assert trained(Memory(memory.data), epochs=epochs) == trained(None)
    assert epochs == list(range(stop + 1, 7))


def test_each_epoch_is_kept_and_changes_nothing() -> None:
    memory = Memory()
    assert trained(memory) == trained(None)
    assert memory.stored == 6


@pytest.mark.parametrize(
    "damage", [b"", b"\x00" * 64, struct.pack("<Q", 2**62) + b"{}"], ids=["empty", "zeros", "size"]
)
def test_what_is_no_checkpoint_is_a_start_from_the_beginning(damage: bytes) -> None:
    epochs: list[int] = []
    assert trained(Memory(damage), epochs=epochs) == trained(None)
    assert epochs == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.99])
def test_half_a_checkpoint_is_none(cut: float) -> None:
    memory = Memory(stop_after=3)
    with pytest.raises(KeyboardInterrupt):
        trained(memory)
    assert memory.data is not None
    epochs: list[int] = []
    assert trained(Memory(memory.data[: int(cut * len(memory.data))]), epochs=epochs) == trained(None)
    assert epochs[0] == 1


def test_a_checkpoint_of_another_recipe_is_not_gone_on_from() -> None:
    memory = Memory(stop_after=3)
    with pytest.raises(KeyboardInterrupt):
        trained(memory)
    other = recipe(learning_rate=0.01)
    assert trained(Memory(memory.data), other) == trained(None, other)


def test_an_accumulating_gradient_cannot_be_kept() -> None:
    with pytest.raises(ValueError, match="accumulating"):
        trained(Memory(), recipe(accumulate=True))


TRAINED = [entry.name for entry in PARADIGMS.entries() if entry.target.repeated]


@pytest.mark.parametrize("paradigm", TRAINED)
def test_only_trainings_of_minutes_keep_checkpoints_and_they_change_no_byte(
    tiny_tokens: TaskTokens, tiny_source: EncoderSource, paradigm: str
) -> None:
    entry = PARADIGMS.get(paradigm)
    options = entry.parse_options({"epochs": 2})
    memory = Memory()
    plain = TrainingSetup(tiny_tokens, tiny_source, resolve_protocol("corrected"), CPU)
    (expected,) = entry.target().train(plain, options, [0])
    kept = dataclasses.replace(plain, keeper=memory.keeper())
    (found,) = entry.target().train(kept, options, [0])
    assert found.to_bytes() == expected.to_bytes()
    long = entry.target.depends_on == "encoder" and set(entry.target.trained) != {"head"}  # OLA-CEA needs no encoder
    assert memory.stored == (2 if long else 0)
    if not long:
        return
    stopped = Memory(stop_after=1)
    with pytest.raises(KeyboardInterrupt):
        list(entry.target().train(dataclasses.replace(plain, keeper=stopped.keeper()), options, [0]))
    again = dataclasses.replace(plain, keeper=Memory(stopped.data).keeper())
    (resumed,) = entry.target().train(again, options, [0])
    assert resumed.to_bytes() == expected.to_bytes()


@pytest.mark.parametrize(("name", "shape"), [("generator.1", 16), ("adam.0.exp_avg", 3)])
def test_states_that_do_not_fit_are_a_start_from_the_beginning(name: str, shape: int) -> None:
    memory = Memory(stop_after=3)
    with pytest.raises(KeyboardInterrupt):
        trained(memory)
    assert memory.data is not None
    size = int.from_bytes(memory.data[:8], "little")
    told = json.loads(memory.data[8 : 8 + size])["__metadata__"]
    tensors = load(memory.data)
    other = save(tensors | {name: torch.zeros(shape, dtype=tensors[name].dtype)}, metadata=told)
    epochs: list[int] = []
    assert trained(Memory(other), epochs=epochs) == trained(None)
    assert epochs == [1, 2, 3, 4, 5, 6]
