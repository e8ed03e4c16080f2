"""Where the names of GECOBench's data sets, paradigms and attribution methods have their titles, order and look."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis.styles import Names, Titles, in_listed_order, registry_profiles, registry_titles

PARADIGM_REGISTRY = "geco_ray.geco.paradigms.base:PARADIGMS"
ATTRIBUTION_REGISTRY = "geco_ray.geco.attribution.base:ATTRIBUTIONS"


def _task_title(name: str, data_dir: Path | None) -> str | None:
    from geco_ray.geco.data.cards import task_title

    return task_title(name)


def _tasks() -> Sequence[str]:
    from geco_ray.geco.data.dataset import DEMO_TASKS
    from geco_ray.geco.data.sources import GECO_TASKS

    return (*GECO_TASKS, *DEMO_TASKS)


DATASETS = Names("dataset", _task_title, in_listed_order(_tasks))
PARADIGMS = Names("paradigm", registry_titles(PARADIGM_REGISTRY), registry_profiles(PARADIGM_REGISTRY))
METHODS = Names("method", registry_titles(ATTRIBUTION_REGISTRY), registry_profiles(ATTRIBUTION_REGISTRY))
NAMES = (DATASETS, PARADIGMS, METHODS)
TITLES = Titles(NAMES)
