"""What a run of robust counterfactuals would not find or would refuse: every table is read and checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from geco_ray.cells import Cell
from geco_ray.errors import UserError
from geco_ray.experiments.cfe.health import health


def find_missing(cells: Sequence[Cell], data_dir: Path | None) -> Iterator[str]:
    """One sentence for each table that is missing or refused."""
    from geco_ray.cfe.data.datasets import dataset_card, open_table

    assets = {asset.name: asset for asset in health(data_dir)}
    for name in dict.fromkeys(str(cell.params()["dataset"]) for cell in cells):
        asset = assets.get(name)
        if asset is not None and (sentence := asset.lack()):
            yield sentence
            continue
        if asset is not None and asset.packaged:
            continue  # pinned arrays of an installed package; to read them takes half of the plan's time
        try:
            open_table(dataset_card(name, data_dir), data_dir)
        except UserError as error:
            yield str(error)
