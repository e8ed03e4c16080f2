"""What this machine has, found without importing torch or Ray: memory, GPUs, and whether the network answers."""

from __future__ import annotations

import importlib.metadata
import shutil
import socket
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HOSTS = ("huggingface.co", "raw.githubusercontent.com")
"""Where encoders and data are downloaded from."""


def memory(path: Path = Path("/proc/meminfo")) -> dict[str, float | None]:
    """Total and available memory, in GB (10^9 bytes); None where the system does not tell."""
    fields = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            name, _, rest = line.partition(":")
            fields[name] = int(rest.split()[0]) * 1024 / 1e9
    except (OSError, ValueError, IndexError):
        fields = {}
    return {
        "memory_gb": _rounded(fields.get("MemTotal")),
        "memory_available_gb": _rounded(fields.get("MemAvailable")),
        "shared_memory_free_gb": free_space(Path("/dev/shm")),
    }


def free_space(folder: Path) -> float | None:
    """Free space of the disk below a folder, in GB; None where there is none."""
    try:
        return _rounded(shutil.disk_usage(folder).free / 1e9)
    except OSError:
        return None


def gpus() -> list[dict[str, Any]]:
    """Name and memory (GB) of each NVIDIA GPU, as its driver tells; empty without a driver."""
    if (program := shutil.which("nvidia-smi")) is None:
        return []
    words = [program, "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(words, capture_output=True, text=True, timeout=5, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    found = []
    for line in told.splitlines():
        name, _, size = line.rpartition(",")
        if name:
            found.append({"name": name.strip(), "memory_gb": _rounded(_mebibytes(size))})
    return found


def _mebibytes(text: str) -> float | None:
    return int(text) * 2**20 / 1e9 if text.strip().isdigit() else None


def torch_build() -> str | None:
    """For what the installed torch was built: ``cpu``, ``cuda``, ``rocm``; None where it is missing.

    Wheels of PyPI for Linux carry no mark and are built for CUDA; they bring NVIDIA's libraries as packages.
    """
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None
    mark = version.partition("+")[2]
    if mark:
        return "cuda" if mark.startswith("cu") else mark.rstrip("0123456789.")
    names = importlib.metadata.requires("torch") or []
    return "cuda" if any(name.startswith("nvidia-") for name in names) else "cpu"


def reachable(hosts: Iterable[str] = HOSTS, seconds: float = 0.5) -> dict[str, bool]:
    """Whether each host takes a connection on port 443 within ``seconds``; all are asked at the same time."""
    names = tuple(hosts)
    pool = ThreadPoolExecutor(len(names))
    asked = {name: pool.submit(_answers, name, seconds) for name in names}
    told = {}
    for name, answer in asked.items():
        try:
            told[name] = answer.result(seconds)
        except TimeoutError:  # a name server that does not answer: nobody can be asked to give up on it
            told[name] = False
    pool.shutdown(wait=False, cancel_futures=True)
    return told


def _answers(host: str, seconds: float) -> bool:
    try:
        socket.create_connection((host, 443), seconds).close()
    except OSError:
        return False
    return True


def _rounded(gigabytes: float | None) -> float | None:
    return None if gigabytes is None else round(gigabytes, 1)
