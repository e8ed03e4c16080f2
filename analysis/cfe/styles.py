"""Order and look of the data sets, counterfactual methods and change families ("Robust to Which Model Change?")."""

from __future__ import annotations

from pathlib import Path

from analysis.styles import Names, Titles, ranked, registry_titles
from geco_ray.errors import UserError

METHOD_REGISTRY = "geco_ray.cfe.methods.base:METHODS"
FAMILY_REGISTRY = "geco_ray.cfe.changes.base:FAMILIES"


def _card_title(name: str, data_dir: Path | None) -> str | None:
    from geco_ray.cfe.data.datasets import dataset_card

    try:
        return dataset_card(name, data_dir).title or None
    except UserError:  # no card of that name on this machine
        return None


DATASETS = Names("dataset", ranked(("breast_cancer", "diabetes", "wine_quality", "heloc")), _card_title)
METHODS = Names(
    "method",
    ranked(
        {
            "wachter": ("#333333", "o", True),
            "apas": ("#0072B2", "s", False),
            "rbr": ("#E69F00", "^", False),
            "kdtree": ("#8C8C8C", "s", True),
            "rnce": ("#009E73", "D", False),
            "betarce": ("#56B4E9", "v", False),
            "roar_lime": ("#CC79A7", "P", False),
            "robx_balanced": ("#D55E00", "X", False),
            "robx_robust": ("#7F2704", "*", False),
        }
    ),
    registry_titles(METHOD_REGISTRY),
)
FAMILIES = Names(
    "family",
    ranked(
        (
            "architecture",
            "bootstrap",
            "seed",
            "training_config",
            "label_update",
            "deletion",
            "data_addition",
            "bounded_parameter",
        )
    ),
    registry_titles(FAMILY_REGISTRY),
)
NAMES = (DATASETS, METHODS, FAMILIES)
TITLES = Titles(NAMES)
