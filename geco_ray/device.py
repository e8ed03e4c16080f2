"""The one place that decides where tensors live, how many threads torch takes and how many CPUs there are."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from geco_ray.errors import ResourceError, UserError

if TYPE_CHECKING:
    import torch


def resolve_device(name: str = "auto") -> torch.device:
    """Turn ``auto``, ``cpu``, ``cuda`` or ``cuda:N`` into a torch device.

    ``auto`` takes the GPU that Ray (or ``CUDA_VISIBLE_DEVICES``) made visible to this process, else the CPU. Where it
    is a GPU, this process computes in full float32 from now on and prefers kernels that repeat, see :func:`_prepare`.

    Raises:
        UserError: the name is none of these, or the environment forces TF32 on a GPU.
        ResourceError: a GPU is asked for by name and this process sees none.
    """
    import torch

    parse_device(name)
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    number = int(name.partition(":")[2] or 0)  # torch itself wraps a large one round to a negative index
    if name.startswith("cuda") and number >= (usable := usable_gpus()):
        raise ResourceError(
            f"device {name!r} was asked for, but torch {torch.__version__} can use {usable} GPUs in this process. "
            "Use --device cpu, or a torch that is built for the CUDA of this machine's driver."
        )
    if name.startswith("cuda"):
        _prepare()
    return torch.device(name)


def _prepare() -> None:
    """Full float32 products, and kernels that give the same bits each time where there are any.

    NVIDIA's containers turn TF32 on by ``TORCH_ALLOW_TF32_CUBLAS_OVERRIDE``, with relative errors of 1e-3: precision is
    an option of a method, and no affair of the environment.

    Raises:
        UserError: ``NVIDIA_TF32_OVERRIDE`` is set, to which cuBLAS listens whatever torch says.
    """
    import torch

    if (forced := os.environ.get("NVIDIA_TF32_OVERRIDE", "0")) not in ("", "0"):
        raise UserError(
            "the environment forces products of reduced precision", where="NVIDIA_TF32_OVERRIDE", found=forced,
            expected="that it is not set", remedy="Unset it; for TF32 on purpose there is the option precision",
        )  # fmt: skip
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Filling memory that nobody has written yet only costs time: nothing of ours reads it.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    warnings.filterwarnings("ignore", message=".*does not have a deterministic implementation")


def device_facts(device: torch.device) -> dict[str, str]:
    """What a record says of where its cell was computed: ``cpu``, or ``cuda:0``, which GPU it is and its precision."""
    if device.type != "cuda":
        return {"device": str(device)}
    import torch

    number = torch.cuda.current_device() if device.index is None else device.index
    return {
        "device": f"cuda:{number}",
        "gpu": torch.cuda.get_device_name(number),
        "float32_matmul": torch.get_float32_matmul_precision(),
    }


def limit_memory(share: float) -> None:
    """Keep this process to its share of the GPU's memory, so that none of those that share it takes it all."""
    if 0 < share < 1 and usable_gpus():
        import torch

        torch.cuda.set_per_process_memory_fraction(share)


_USED = 0.6  # of what is free; the rest is for what a pass needs besides, and for splinters


def memory_budget(device: torch.device, most: int) -> int:
    """Bytes that one computation may plan with: ``most``, halved until it fits into what this process still has.

    By halves, so that a little more or less of free memory leaves the sizes of passes, and so the last bits, alone.
    """
    if device.type != "cuda":
        return most
    import torch

    free, total = torch.cuda.mem_get_info(device)
    taken = torch.cuda.memory_allocated(device)
    free += torch.cuda.memory_reserved(device) - taken  # cached, for this process as good as free
    available = min(free, torch.cuda.get_per_process_memory_fraction(device) * total - taken)
    while most > max(1.0, _USED * available):
        most //= 2
    return most


def usable_gpus() -> int:
    """How many GPUs torch can compute on here; others may be there, for which its build or the driver is not made."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a driver is too old; we say in our own words what follows from it
        return torch.cuda.device_count() if torch.cuda.is_available() else 0


def lost_device(error: BaseException) -> bool:
    """Whether after this error every further call to the GPU fails in this process.

    A failed assertion on the device (of a loss that got NaN, say), an illegal access or a memory fault leaves CUDA
    unusable; running out of memory does not. What CUDA thinks harmless is counted too: another process costs seconds.
    """
    torch = sys.modules.get("torch")
    seen: set[int] = set()
    cause: BaseException | None = error
    while torch is not None and cause is not None and id(cause) not in seen:
        if isinstance(cause, torch.AcceleratorError) and not isinstance(cause, torch.OutOfMemoryError):
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return False


def release_memory() -> None:
    """Give cached GPU memory back to others on the GPU; on one that was lost there is nothing to do."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        with suppress(RuntimeError):
            torch.cuda.empty_cache()


def parse_device(name: str) -> str:
    """The name as given, if it is one of a device; whether this machine has it is :func:`resolve_device`'s affair.

    Raises:
        UserError: it is none.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", name):
        raise UserError(f"unknown device {name!r}", expected="auto, cpu, cuda or cuda:N")
    return name


def limit_threads(threads: int) -> None:
    """Give this process ``threads`` CPU threads for torch and for every BLAS, loaded already or yet to be.

    A slot of n CPUs must not start more than n, and a sum split over another number of threads ends in other bits.
    """
    count = max(1, threads)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(count)
    import threadpoolctl  # comes with scikit-learn
    import torch

    torch.set_num_threads(count)
    threadpoolctl.threadpool_limits(count, user_api="blas")  # NumPy's is loaded by now and read no variable


def usable_cpus(groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int:
    """How many CPUs this process may use: those of its affinity, cut to the quota of its control groups; at least 1.

    Slurm, ``taskset`` and cpusets set the affinity, containers the quota (of its group and of every group around it,
    versions 1 and 2); a quota of 2.5 CPUs counts as 2.

    Args:
        groups: the file in which the kernel lists the control groups of this process.
        root: where the control groups are mounted.
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([count, *map(int, _quotas(groups, root))]))


def _quotas(groups: Path, root: Path) -> Iterator[float]:
    for line in _read(groups).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        own = PurePosixPath(path.lstrip("/"))
        for inner in (own, *own.parents):  # in a container without a namespace of its own, only the last is there
            if not controllers:
                words = _read(root / inner / "cpu.max").split()
            elif "cpu" in controllers.split(","):
                folder = next((root / name for name in (controllers, "cpu") if (root / name).is_dir()), root)
                words = [*_read(folder / inner / "cpu.cfs_quota_us").split()]
                words += _read(folder / inner / "cpu.cfs_period_us").split()
            else:
                break
            if len(words) == 2 and all(map(str.isdigit, words)) and int(words[1]):  # else "max", or -1: no limit
                yield int(words[0]) / int(words[1])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
