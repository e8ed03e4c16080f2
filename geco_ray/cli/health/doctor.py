"""What ``geco-ray doctor`` shows: what is installed and found, and for what is missing the command that gets it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geco_ray.cli.health import machine
from geco_ray.device import usable_cpus
from geco_ray.plan.asset import Asset

_PACKAGES = ("ray", "torch", "transformers", "captum", "lime", "scikit-learn", "pandas", "pyarrow", "numpy", "highspy")
_INSTALL = "pip install -e . -c constraints.txt"


@dataclass(frozen=True)
class Health:
    """What was found.

    Attributes:
        machine: Python, CPUs, memory (GB), GPUs, torch's build.
        packages: distribution to its version, or None where it is missing.
        network: host to whether it answered; empty where the network is forbidden.
        folders: where data, downloads and results lie, and whether results can be kept.
        assets: data sets and encoders, found or missing.
        remedies: one sentence for each thing that is wrong.
    """

    machine: dict[str, Any]
    packages: dict[str, str | None]
    network: dict[str, bool]
    folders: dict[str, Any]
    assets: list[Asset]
    remedies: list[str]

    def document(self) -> dict[str, Any]:
        """The same as one JSON document; docs/json.md describes its keys."""
        assets = {
            asset.name: {"kind": asset.kind, "found": asset.found, "get": asset.get, "downloaded_by_run": asset.fetched}
            for asset in self.assets
        }
        return {
            "machine": self.machine,
            "packages": self.packages,
            "network": self.network,
            "folders": self.folders,
            "assets": assets,
            "remedies": self.remedies,
        }


def health(root: str = "runs", data_dir: Path | None = None) -> Health:
    """What is installed, what each benchmark finds, and whether results can be kept. Creates nothing."""
    from geco_ray.files.download import is_offline

    offline = is_offline()
    facts = {
        "python": platform.python_version(),
        "cpus": os.cpu_count() or 1,
        "cpus_usable": usable_cpus(),
        **machine.memory(),
        "gpus": machine.gpus(),
        "torch_build": machine.torch_build(),
    }
    packages = {name: _version(name) for name in ("geco-ray", *_PACKAGES)}
    folders, problem = _folders(root, data_dir)
    network = {} if offline else machine.reachable()
    found = _assets(data_dir)
    remedies = [*_machine_remedies(facts), *missing_packages(), *problem, *_asset_remedies(found, network)]
    return Health(facts, packages, network, folders, found, remedies)


def missing_package(error: ModuleNotFoundError) -> str | None:
    """What to say of a module that is missing because a package that geco_ray requires is not installed, else None.

    Plans, states, reports and scores need neither torch nor Ray, so geco_ray is of use without them.
    """
    package = {"sklearn": "scikit-learn"}.get(error.name or "", error.name)
    if package not in _PACKAGES:  # a module of a package that is there, or nothing of ours: a fault, not a lack
        return None
    return f"this needs the package {package}, which is not installed. {_INSTALL}"


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _assets(data_dir: Path | None) -> list[Asset]:
    from geco_ray.plan.benchmark import benchmarks, load_named

    return [asset for benchmark in benchmarks() if benchmark.health for asset in load_named(benchmark.health)(data_dir)]


def _folders(root: str, data_dir: Path | None) -> tuple[dict[str, Any], list[str]]:
    """Where things lie; whether a run could write, judged by the closest folder that is there."""
    from geco_ray.files.roots import find_cache_dir
    from geco_ray.ledger.storage import LocalStorage, open_storage

    named = os.environ.get("GECO_RAY_DATA") or None
    cache = find_cache_dir()
    told: dict[str, Any] = {"data": str(data_dir) if data_dir else named, "cache": str(cache) if cache else None}
    storage = open_storage(root)
    if not isinstance(storage, LocalStorage):
        return told | {"runs": storage.root, "runs_exists": None, "runs_writable": None, "runs_free_gb": None}, []
    folder = storage.folder
    there = next(place for place in (folder, *folder.parents) if place.exists())
    writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    told |= {"runs": str(folder), "runs_exists": there == folder, "runs_writable": writable}
    told["runs_free_gb"] = machine.free_space(there) if writable else None
    return told, [] if writable else [f"{folder} cannot be written; give another run folder with --root."]


def _machine_remedies(facts: Mapping[str, Any]) -> list[str]:
    if facts["gpus"] and facts["torch_build"] == "cpu":
        return ["There is a GPU, and this torch is built for CPUs: install torch's CUDA build (see docs/cluster.md)."]
    return []


def missing_packages() -> list[str]:
    """One sentence that names the packages which geco_ray requires and which are not installed; none where all are."""
    missing = [name for name in _PACKAGES if _version(name) is None]
    return [f"Not installed: {', '.join(missing)}. {_INSTALL}"] if missing else []


def _asset_remedies(assets: list[Asset], network: Mapping[str, bool]) -> list[str]:
    """The command for each missing thing, and whether a run would do it by itself: not where no host answers."""
    by_run = " (or a run that needs it downloads it)" if any(network.values()) else ""
    return [
        f"{asset.name} is missing: {asset.get}{by_run if asset.fetched else ''}"
        for asset in assets
        if asset.found is None
    ]
