"""Where the names of data sets, counterfactual methods and change families have their titles, order and look."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis.styles import Names, Titles, in_listed_order, registry_profiles, registry_titles
from geco_ray.errors import UserError

METHOD_REGISTRY = "geco_ray.cfe.methods.base:METHODS"
FAMILY_REGISTRY = "geco_ray.cfe.changes.base:FAMILIES"


def _card_title(name: str, data_dir: Path | None) -> str | None:
    from geco_ray.cfe.data.datasets import dataset_card

    try:
        return dataset_card(name, data_dir).title or None
    except UserError:  # no card of that name on this machine
        return None


def built_in() -> Sequence[str]:
    """The data sets that come with the benchmark, in its order."""
    from geco_ray.cfe.data.cards import BUILT_IN

    return tuple(BUILT_IN)


DATASETS = Names("dataset", _card_title, in_listed_order(built_in))
METHODS = Names("method", registry_titles(METHOD_REGISTRY), registry_profiles(METHOD_REGISTRY))
FAMILIES = Names("family", registry_titles(FAMILY_REGISTRY), registry_profiles(FAMILY_REGISTRY))
NAMES = (DATASETS, METHODS, FAMILIES)
TITLES = Titles(NAMES)
