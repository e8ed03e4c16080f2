"""What a process with a GPU does before it computes, told by what torch is asked: this machine need not have one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import pytest
import torch

from geco_ray.device import device_facts, limit_memory, memory_budget, resolve_device
from geco_ray.errors import UserError

GPU, CPU = torch.device("cuda"), torch.device("cpu")
GIB = 2**30


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Torch says that there is one; what is set for it is taken back."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    fill = torch.utils.deterministic.fill_uninitialized_memory
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: f"GPU {number}")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)
    with warnings.catch_warnings():
        yield monkeypatch
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]
    torch.utils.deterministic.fill_uninitialized_memory = fill
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", ["auto", "cuda", "cuda:0"])
def test_a_gpu_computes_in_full_float32_whatever_the_environment_asked_for(gpu: pytest.MonkeyPatch, name: str) -> None:
    torch.set_float32_matmul_precision("high")  # as TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 has it
    assert resolve_device(name).type == "cuda"
    assert torch.get_float32_matmul_precision() == "highest"
    assert not torch.backends.cuda.matmul.allow_tf32
    assert torch.are_deterministic_algorithms_enabled()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


def test_a_precision_that_torch_cannot_undo_is_refused_on_a_gpu_alone(gpu: pytest.MonkeyPatch) -> None:
    gpu.setenv("NVIDIA_TF32_OVERRIDE", "1")
    assert resolve_device("cpu") == CPU
    with pytest.raises(UserError, match="NVIDIA_TF32_OVERRIDE: the environment forces"):
        resolve_device("auto")


@pytest.mark.usefixtures("gpu")
def test_a_record_names_the_gpu_and_its_precision() -> None:
    assert device_facts(resolve_device("auto")) == {"device": "cuda:0", "gpu": "GPU 0", "float32_matmul": "highest"}
    assert device_facts(torch.device("cuda:3"))["device"] == "cuda:3"
    assert device_facts(CPU) == {"device": "cpu"}


@pytest.mark.parametrize(
    ("free", "share", "taken", "budget"),
    [(80, 1.0, 0.5, 6), (9, 1.0, 0.5, 3), (80, 0.05, 0.5, 1.5), (80, 0.05, 3.9, 0.046875), (0, 1.0, 0, 0)],
)
def test_passes_are_planned_with_what_is_free_of_the_share(
    gpu: pytest.MonkeyPatch, free: float, share: float, taken: float, budget: float
) -> None:
    gpu.setattr(torch.cuda, "mem_get_info", lambda device: (int(free * GIB), 80 * GIB))
    gpu.setattr(torch.cuda, "memory_allocated", lambda device: int(taken * GIB))
    gpu.setattr(torch.cuda, "memory_reserved", lambda device: int(taken * GIB))
    gpu.setattr(torch.cuda, "get_per_process_memory_fraction", lambda device: share)
    assert memory_budget(GPU, 6 * GIB) == max(1, int(budget * GIB))
    assert memory_budget(CPU, 6 * GIB) == 6 * GIB


def test_only_those_who_share_a_gpu_are_kept_to_a_part_of_its_memory(gpu: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    gpu.setattr(torch.cuda, "set_per_process_memory_fraction", limits.append)
    for share in (0.0, 0.25, 1.0):
        limit_memory(share)
    assert limits == [0.25]
