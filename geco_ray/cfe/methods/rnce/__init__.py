"""RNCE: the nearest training row that stays favourable for every network in a box around the base model."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from geco_ray.cfe.methods.base import METHODS, GenerationTask, Prepared, Refused
from geco_ray.cfe.methods.kdtree import NearestRows
from geco_ray.registry import Options, Profile


class RnceOptions(Options):
    """Options of RNCE; the paper uses 0.005 for both.

    Args:
        weight_radius: largest change of a weight.
        bias_radius: largest change of a bias.
    """

    weight_radius: float = Field(default=0.005, ge=0.0)
    bias_radius: float = Field(default=0.005, ge=0.0)


@METHODS.register(
    "rnce",
    title="RNCE",
    options=RnceOptions,
    profile=Profile(
        order=5,
        colour="#007A5A",
        marker="D",
        aims=True,
        assumes="bounded parameters",
        certificate="exact, for all models within a parameter radius",
        scope=("bounded_parameter",),
    ),
)
def prepare(task: GenerationTask, options: RnceOptions) -> Prepared:
    """Test all training rows once, exactly ("Robust to Which Model Change?", RNCE with radii of 0.005).

    The released code returns the row itself, without a search on the line from it to the factual, and so do we.
    """
    from geco_ray.cfe.methods.rnce.exact import DECIDED_BY, robust_rows
    from geco_ray.cfe.methods.rnce.interval import NetworkBox
    from geco_ray.cfe.milp.network import ReluNet

    box = NetworkBox(ReluNet.from_mlp(task.model), options.weight_radius, options.bias_radius)
    test = robust_rows(box, task.train_x.astype(np.float64))
    robust = np.flatnonzero(test.passes)
    if not len(robust):
        return Refused("not_found", "no training row is robust", {"training_row": None})
    decided = np.bincount(test.decided_by, minlength=len(DECIDED_BY))
    counts = {f"rows_by_{name}": int(rows) for name, rows in zip(DECIDED_BY, decided, strict=True)}
    return NearestRows(task.train_x[robust], robust, {"candidates": len(robust), **counts})
