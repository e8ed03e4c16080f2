"""What ``geco-ray doctor`` says of robust counterfactuals: where each table lies, and how to get what is missing."""

from __future__ import annotations

from pathlib import Path

from geco_ray.errors import UserError
from geco_ray.plan.asset import Asset


def health(data_dir: Path | None) -> list[Asset]:
    """Where each built-in table lies; of one that is missing, the command that gets it. Creates nothing."""
    from geco_ray.cfe.data.cards import BUILT_IN
    from geco_ray.cfe.data.datasets import find_file

    assets = []
    to = f" --to {data_dir}" if data_dir else ""
    for name, card in BUILT_IN.items():
        accept = " --accept-terms" if card.terms else ""
        try:
            found, get = str(find_file(card, data_dir)) if card.url else "in scikit-learn", None
        except UserError:
            found, get = None, f"geco-ray data download {name}{accept}{to}"
        assets.append(Asset(name, "data set", found, get, packaged=not card.url))
    return assets
