"""The two columns that say whether generated counterfactuals keep the constraints of their data set."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from geco_ray.cfe.constraints.declared import Constraints


def with_constraints(table: pa.Table, constraints: Constraints | None) -> pa.Table:
    """A counterfactuals table with ``constraints_kept`` and ``broken``, null where nothing was generated.

    Args:
        table: as :func:`geco_ray.cfe.generation.generate` makes it.
        constraints: those of its data set; with ``None`` the table stays as it is.
    """
    if constraints is None:
        return table
    points = table["counterfactual"].to_pylist()
    made = [i for i, point in enumerate(points) if point is not None]
    kept: list[bool | None] = [None] * len(points)
    said: list[str | None] = [None] * len(points)
    if made:
        rows = np.array([points[i] for i in made], dtype=np.float64)
        factuals = np.array(table["factual"].take(pa.array(made)).to_pylist(), dtype=np.float64)
        broken = constraints.broken(factuals, rows)
        for place, i in enumerate(made):
            failed = [text for text, flags in broken.items() if flags[place]]
            kept[i], said[i] = not failed, "; ".join(failed) or None
    table = table.append_column("constraints_kept", pa.array(kept, pa.bool_()))
    return table.append_column("broken", pa.array(said, pa.string()))
