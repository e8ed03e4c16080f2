"""The eight GECO files from the pinned commit of the release into the download cache.

Loading a task looks into ``data_dir`` alone if one is given; else into ``$GECO_RAY_DATA``, then into the cache, and
then comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from geco_ray.errors import unknown_name
from geco_ray.files.download import cache_folder, fetch
from geco_ray.geco.data.sources import GECO_TASKS, SHA256, SPLITS, file_url


def cached_files(task: str, folder: Path | None = None) -> dict[str, Path]:
    """Where the two files of a GECO task lie in the cache (or ``folder``) once they are there, keyed by split."""
    root = cache_folder() if folder is None else folder
    return {split: root / "geco" / task / f"{split}.jsonl" for split in SPLITS}


def fetch_task(
    task: str, folder: Path | None = None, *, offline: bool | None = None, timeout: float = 30.0, retries: int = 3
) -> dict[str, Path]:
    """The two files of a GECO task, downloaded where they are missing, checked in any case.

    Args:
        task: one of the four GECO tasks.
        folder: a folder that ``data_dir`` may name; by default the cache.
        offline: never touch the network; by default what ``$GECO_RAY_OFFLINE`` says.
        timeout: seconds without a byte after which an attempt ends.
        retries: attempts after the first.

    Returns:
        Paths keyed by split.

    Raises:
        UserError: no such task; offline; or as :func:`geco_ray.files.download.fetch`.
        StorageError: the cache cannot be written.
    """
    if task not in GECO_TASKS:
        raise unknown_name("GECO task", task, GECO_TASKS)
    files = cached_files(task, folder)
    for split, path in files.items():
        fetch(file_url(task, split), SHA256[task, split], path, offline=offline, timeout=timeout, retries=retries)
    return files


def fetch_tasks(tasks: Sequence[str] = GECO_TASKS, *, offline: bool | None = None) -> dict[tuple[str, str], Path]:
    """As :func:`fetch_task` for several tasks; paths keyed by task and split."""
    return {(task, split): path for task in tasks for split, path in fetch_task(task, offline=offline).items()}
