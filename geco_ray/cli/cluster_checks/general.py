"""What any cluster file needs: Ray's schema, images, mounted folders, the token, what is installed."""

from __future__ import annotations

import contextlib
import fnmatch
import importlib.metadata
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from geco_ray.cli.cluster_checks.file import ClusterFile, Finding
from geco_ray.files.home import expand_home
from geco_ray.files.yaml_lines import KeyPath as Keys

TOKEN = "/.ray/auth_token"
TOKEN_COMMAND = "ray get-auth-token --generate"
_LARGEST_MOUNT = 500_000_000  # bytes; the repository with the data sets has 30 MB
_START = ("head_start_ray_commands", "worker_start_ray_commands")


def check_schema(file: ClusterFile) -> Iterator[Finding]:
    from geco_ray.runtime.cluster_file import validate_cluster

    try:
        refusal = validate_cluster(file.values)
    except ImportError:
        yield file.hint((), "this Ray offers no check of its own, so its schema was not looked at")
        return
    if refusal is not None:
        yield file.error(refusal.path, f"Ray refuses the file: {refusal.what}", refusal.remedy)


def check_images(file: ClusterFile) -> Iterator[Finding]:
    tables: list[Keys] = [("docker",), *(("available_node_types", n, "docker") for n in file.node_types())]
    found = False
    for keys in tables:
        for key, image in file.table(*map(str, keys)).items():
            if key in ("image", "head_image", "worker_image") and isinstance(image, str):
                found = True
                yield from _check_image(file, (*keys, key), image)
    commands = str(file.values.get("setup_commands", ""))
    if not found and f"=={ray_version()}" not in commands:
        what = "no image is named, so Ray's own set-up would install another Ray on the machines"
        yield file.error(("docker",), what, f"Name rayproject/ray:{_wanted_tag()}")


def _check_image(file: ClusterFile, keys: Keys, image: str) -> Iterator[Finding]:
    repository, _, tag = image.rpartition(":")
    remedy = f"Name rayproject/ray:{_wanted_tag()}, or install the image's versions here"
    if repository.endswith("/ray-ml"):
        yield file.error(keys, f"the images ray-ml are no longer made ({image})", remedy)
    elif not repository.endswith("rayproject/ray"):
        what = f"whether {image} holds Ray {ray_version()} and Python {python_version()} cannot be told from its name"
        yield file.hint(keys, what, "Look yourself: both must be those of this machine")
    elif not (parts := re.match(r"(\d+\.\d+\.\d+\w*)(?:-extra)?-py(\d)(\d+)(?:-|$)", tag)):
        yield file.error(keys, f"the tag {tag!r} does not pin Ray and Python", remedy)
    else:
        if parts[1] != ray_version():
            yield file.error(keys, f"the image has Ray {parts[1]} and this machine {ray_version()}", remedy)
        if (python := f"{parts[2]}.{parts[3]}") != python_version():
            yield file.error(keys, f"the image has Python {python} and this machine {python_version()}", remedy)


def ray_version() -> str:
    return importlib.metadata.version("ray")


def python_version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _wanted_tag() -> str:
    return f"{ray_version()}-py{python_version().replace('.', '')}-gpu"


def check_mounts(file: ClusterFile) -> Iterator[Finding]:
    for target, source in file.table("file_mounts").items():
        if not isinstance(source, str):
            yield file.error(("file_mounts", target), "the source is no path")
        elif (place := expand_home(source, f"file_mounts: {target}")).exists():
            if target.endswith(TOKEN) and not place.read_bytes().strip():
                yield file.error(("file_mounts", target), f"{source} is empty", f"Remove it, then `{TOKEN_COMMAND}`")
            elif place.is_dir():
                yield from _check_size(file, target, place)
        elif target.endswith(TOKEN):
            yield file.hint(("file_mounts", target), f"{source} is not there yet", f"Make it: `{TOKEN_COMMAND}`")
        else:
            what = f"{source} is not there (looked from {Path.cwd()})"
            yield file.error(("file_mounts", target), what, "Paths are those of the folder that you call `ray up` in")


def _check_size(file: ClusterFile, target: str, folder: Path) -> Iterator[Finding]:
    """A folder goes to every machine, each time that one starts."""
    sizes = mounted_sizes(folder, [str(pattern) for pattern in file.values.get("rsync_exclude") or []])
    total = sum(sizes.values())
    if total > _LARGEST_MOUNT:
        name, size = max(sizes.items(), key=lambda item: item[1])
        what = f"{folder} is {total / 1e9:.1f} GB, and every machine gets it ({size / 1e9:.1f} GB of it is {name})"
        yield file.error(("file_mounts", target), what, f"Add {name!r} to rsync_exclude, or mount a smaller folder")


def mounted_sizes(folder: Path, exclude: Sequence[str]) -> dict[str, int]:
    """Bytes of each entry of a folder that rsync would copy, without what the patterns leave out."""
    names = [pattern.removeprefix("**/").rstrip("/") for pattern in exclude]

    def left_out(name: str) -> bool:
        return any(fnmatch.fnmatch(name, pattern) for pattern in names)

    sizes: dict[str, int] = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not left_out(name)]
        first = Path(place).relative_to(folder).parts[:1]
        for name in files:
            if not left_out(name):
                entry = first[0] if first else name
                with contextlib.suppress(OSError):
                    sizes[entry] = sizes.get(entry, 0) + (Path(place) / name).lstat().st_size
    return sizes


def check_torch(file: ClusterFile) -> Iterator[Finding]:
    """The constraints pin torch for CPUs' wheels too; a GPU machine takes the same release built for CUDA."""
    images = str([value for key, value in file.table("docker").items() if key.endswith("image")])
    commands = [str(command) for command in file.values.get("setup_commands") or []]
    if not re.search(r"-(gpu|cu\d+)", images) or any("download.pytorch.org/whl/cu" in command for command in commands):
        return
    for number, command in enumerate(commands):
        for path in re.findall(r"-c\s+(\S+)", command):
            constraints = Path(path)
            if constraints.is_file() and re.search(r"^torch==", constraints.read_text(encoding="utf-8"), re.M):
                what = f"machines with GPUs install torch as {path} pins it, which says nothing of CUDA"
                remedy = "Install the same release from https://download.pytorch.org/whl/cu... first (see cluster.yaml)"
                yield file.error(("setup_commands", number), what, remedy)


def check_token(file: ClusterFile) -> Iterator[Finding]:
    if not any(str(target).endswith(TOKEN) for target in file.table("file_mounts")):
        what = "the machines do not get the token by which Ray's processes know each other"
        yield file.error(("file_mounts",), what, f"Add /home/ray{TOKEN}: ~{TOKEN}")
    options = str([value for key, value in file.table("docker").items() if key.endswith("run_options")])
    for key in _START:
        if "RAY_AUTH_MODE=token" not in f"{file.values.get(key, '')} {options}":
            yield file.error((key,), "Ray is started without its token", "Put RAY_AUTH_MODE=token before `ray start`")
