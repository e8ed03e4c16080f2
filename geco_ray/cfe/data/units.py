"""The way back from standardised features to the units of a table, small enough for a cell's record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from geco_ray.cfe.distance import robust_scale

if TYPE_CHECKING:
    import numpy.typing as npt

    from geco_ray.cfe.data.datasets import Dataset


@dataclass(frozen=True, eq=False)
class Units:
    """Names, mean and deviation of each feature, and the unit of its distance.

    Attributes:
        features: the names (d).
        mean, scale: float64 (d,), in the units of the table: ``x * scale + mean`` leads back.
        mad: float64 (d,), by which a change is divided in the distance, in the units of the table.
        show_rows: whether the card lets rows of the table be shown.
    """

    features: tuple[str, ...]
    mean: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]
    mad: npt.NDArray[np.float64]
    show_rows: bool

    @staticmethod
    def of(dataset: Dataset) -> Units:
        """The units of a data set."""
        spread = robust_scale(np.asarray(dataset.train.x, dtype=np.float32)) * dataset.scale
        return Units(dataset.features, dataset.mean, dataset.scale, spread, dataset.card.show_rows)

    def record(self) -> dict[str, Any]:
        """As JSON, for :meth:`from_record`."""
        numbers = {name: getattr(self, name).tolist() for name in ("mean", "scale", "mad")}
        return {"features": list(self.features), **numbers, "show_rows": self.show_rows}

    @staticmethod
    def from_record(values: Mapping[str, Any]) -> Units:
        """What :meth:`record` gave."""
        mean, scale, mad = (np.asarray(values[name], dtype=np.float64) for name in ("mean", "scale", "mad"))
        return Units(tuple(values["features"]), mean, scale, mad, bool(values["show_rows"]))
