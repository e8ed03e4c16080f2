"""What ``geco-ray doctor`` shows: what is installed and found, and for what is missing the command that gets it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
from pathlib import Path

_PACKAGES = ("ray", "torch", "transformers", "captum", "lime", "scikit-learn", "pandas", "pyarrow", "numpy", "highspy")


def health(root: str = "runs", data_dir: Path | None = None) -> dict[str, str]:
    """What is installed, what each benchmark finds, and whether results can be kept. Creates nothing."""
    facts = {"python": platform.python_version(), "cpus": str(os.cpu_count())}
    for package in ("geco-ray", *_PACKAGES):
        try:
            facts[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            facts[package] = "missing: pip install -e . -c constraints.txt"
    facts["gpu"] = _gpu()
    return facts | _data(data_dir) | {"run folder": _run_folder(root)}


def _gpu() -> str:
    import torch

    if not torch.cuda.is_available():
        return "none: everything runs on CPUs"
    return ", ".join(torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count()))


def _data(data_dir: Path | None) -> dict[str, str]:
    """Where data are looked for, and what each benchmark finds there or misses."""
    from geco_ray.files.roots import cache_dir
    from geco_ray.plan.benchmark import benchmarks, load_named

    named = os.environ.get("GECO_RAY_DATA")
    facts = {
        "data folder": f"{data_dir} (--data-dir)" if data_dir else f"{named} (GECO_RAY_DATA)" if named else "not set",
        "cache": str(cache_dir()),
    }
    for benchmark in benchmarks():
        if benchmark.health is not None:
            facts |= load_named(benchmark.health)(data_dir)
    return facts


def _run_folder(root: str) -> str:
    """Whether a run could write here, judged by the closest folder that is there."""
    from geco_ray.ledger.storage import LocalStorage, open_storage

    storage = open_storage(root)
    if not isinstance(storage, LocalStorage):
        return f"{storage.root}: a bucket, not looked at"
    folder = storage.folder
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return f"{folder}: cannot be written; give another with --root"
    state = "is there" if there == folder else "will be made"
    return f"{folder}: {state}, writable, {shutil.disk_usage(there).free / 1e9:.1f} GB free"
