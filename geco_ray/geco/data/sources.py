"""Where the GECO files come from: the pinned commit, the eight checksums, the folders that are searched, the download.

Loading a task looks into ``data_dir`` alone if one is given; else into ``$GECO_RAY_DATA``, then into the cache, and
then downloads.

Facts of the release: GECOBench (Frontiers in AI 2025, doi 10.3389/frai.2025.1694388), repository
``braindatalab/gecobench``, BSD-3 licence.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from geco_ray.errors import UserError, suggest, unknown_name
from geco_ray.files.checksums import not_the_pinned_file
from geco_ray.files.roots import cache_dir, data_roots
from geco_ray.geco.task import SPLITS

REPOSITORY = "braindatalab/gecobench"
COMMIT = "f0907c69d95353016556a6cbd0c5fcaa76392ed9"
GECO_TASKS = ("binary_gender_all", "binary_gender_subj", "non_binary_gender_all", "non_binary_gender_subj")
DOWNLOAD_COMMAND = "geco-ray data download"

SHA256: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("binary_gender_all", "test"): "60f4f84ec5aa1d23eba47bec31e2e22b8c78557a2b28314549ab832d99960edd",
        ("binary_gender_all", "train"): "2763003165719d26ef66503ef3943b782a77e4ef9741098a8e18ad1592ad0df9",
        ("binary_gender_subj", "test"): "0ff41288c3691acc46a6df62a4fab407703e2c5a7a8e09f6cd71b3a679869d79",
        ("binary_gender_subj", "train"): "590549986d54f2a7d5e49e2bcd66473e0ce79d53879960751c9e39395115f066",
        ("non_binary_gender_all", "test"): "08d5803e7b6aed5d3f894127a9f88b93ee3e9e35245e261444c68cb5bf57fdb6",
        ("non_binary_gender_all", "train"): "ef1b972be4c3485027db7ead0df5dfeb4a4082e61a642c0da9d2eb7724ac8849",
        ("non_binary_gender_subj", "test"): "a8f8dc273edfddfb800ef98d6747de68e01c6b0c8c6dffb39a62f6cb410a393f",
        ("non_binary_gender_subj", "train"): "ffee51c528469ab94ce4ba272065d385c2b351c84c931dd478288952c9cd7859",
    }
)
"""SHA-256 of each (task, split) file at :data:`COMMIT`."""


def file_url(task: str, split: str) -> str:
    """Address of one GECO file at the pinned commit."""
    return f"https://raw.githubusercontent.com/{REPOSITORY}/{COMMIT}/data/dataset/{task}/{split}.jsonl"


def candidate_folders(task: str, data_dir: Path | None) -> list[Path]:
    """Every folder in which the task's two files may lie, in the order of the search."""
    return [folder for root in data_roots(data_dir) for folder in (root / "geco" / task, root / task)]


def user_tasks(data_dir: Path | None) -> list[str]:
    """Names of the folders in the searched roots that hold both files, sorted."""
    found = set()
    for root in data_roots(data_dir):
        for parent in (root, root / "geco"):
            for folder in parent.iterdir() if parent.is_dir() else ():
                if all((folder / f"{split}.jsonl").is_file() for split in SPLITS):
                    found.add(folder.name)
    return sorted(found)


def find_files(task: str, data_dir: Path | None, known: Iterable[str]) -> dict[str, Path]:
    """Paths of a task's ``train.jsonl`` and ``test.jsonl``, keyed by split.

    A GECO task that is in no folder is downloaded into the cache, unless ``data_dir`` is given.

    Args:
        task: a GECO name, or the name of a folder of the user's own.
        data_dir: the folder to search, see :func:`geco_ray.files.roots.data_roots`.
        known: names to suggest when the task is nowhere.

    Raises:
        UserError: no folder of that name, or a folder that lacks one of the two files.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", task):
        raise UserError(f"{task!r} cannot be the name of a dataset", expected="letters, digits, '_', '-', '.'")
    looked = candidate_folders(task, data_dir)
    folder = next((folder for folder in looked if folder.is_dir()), None)
    if task in GECO_TASKS and data_dir is None and (folder is None or cache_dir() in folder.parents):
        return _downloaded(task, looked)
    how = f"Get it with `{DOWNLOAD_COMMAND}`, or name a folder that has it with --data-dir."
    if folder is None:
        places = "looked for " + ", ".join(str(path) for path in looked)
        if task in GECO_TASKS:
            raise UserError(f"the files of dataset {task!r} are missing, {places}", remedy=how)
        names = sorted({*known, *user_tasks(data_dir)})
        raise UserError(f"unknown dataset {task!r}, {places}", remedy=suggest(task, names))
    files = {split: folder / f"{split}.jsonl" for split in SPLITS}
    for path in files.values():
        if not path.is_file():
            remedy = (
                how if task in GECO_TASKS else f"A dataset is two files: {', '.join(p.name for p in files.values())}."
            )
            raise UserError(f"dataset {task!r} lacks a file", where=str(path), remedy=remedy)
    return files


def cached_files(task: str, folder: Path | None = None) -> dict[str, Path]:
    """Where the two files of a GECO task lie in the cache (or ``folder``) once they are there, keyed by split."""
    root = cache_dir() if folder is None else folder
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
    from geco_ray.files.download import fetch

    if task not in GECO_TASKS:
        raise unknown_name("GECO task", task, GECO_TASKS)
    files = cached_files(task, folder)
    for split, path in files.items():
        fetch(file_url(task, split), SHA256[task, split], path, offline=offline, timeout=timeout, retries=retries)
    return files


def _downloaded(task: str, looked: Iterable[Path]) -> dict[str, Path]:
    from geco_ray.files.download import DownloadError

    try:
        return fetch_task(task)
    except DownloadError as error:
        places = ", ".join(str(path) for path in looked)
        raise UserError(
            f"dataset {task!r} is not available, looked for {places}; {error.what}",
            where=error.where,
            found=error.found,
            expected=error.expected,
            remedy=f"{error.remedy or ''} Or name a folder that has it with --data-dir.".strip(),
        ) from error


def verify(task: str, split: str, path: Path, data: bytes) -> str:
    """SHA-256 of ``data``, checked against the release when ``task`` is one of the four.

    Raises:
        UserError: the bytes differ from the pinned commit; the message has the command that removes the file.
    """
    found = hashlib.sha256(data).hexdigest()
    expected = SHA256.get((task, split))
    if expected is not None and found != expected:
        then = f"and get it again with `{DOWNLOAD_COMMAND}`; a changed copy can be used under another folder name"
        raise not_the_pinned_file(path, found=found, expected=expected, then=then, kind=UserError)
    return found
