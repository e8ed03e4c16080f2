"""Options of APΔS; the defaults are the paper's, but for the budgets, which are counted here and not timed."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from geco_ray.registry import Options


class ApasOptions(Options):
    """Options of APΔS.

    Args:
        confidence: of the statement that the sample makes.
        robustness: share of the sampled box that must agree.
        first_margin: first margin of the logit.
        margin_step: how much it is raised after a rejected candidate.
        last_margin: the search ends above it.
        radius: largest parameter change of the sampled networks; ``None`` calibrates it on the update pool.
        starts: starting points of a search, see :class:`geco_ray.cfe.milp.walk.Walk`.
        max_programs: linear programs a request may take over all its margins.
        proof: ``none``: candidates are the closest that were found; ``budget`` and ``full``: the accepted candidate is
            proven closest, within ``proof_nodes`` or without end. A closer point replaces it, and must be accepted too.
        proof_nodes: branch-and-bound nodes of a request under ``proof: budget``.
    """

    confidence: float = Field(default=0.999, gt=0, lt=1)
    robustness: float = Field(default=0.995, gt=0, lt=1)
    first_margin: float = Field(default=0.01, ge=0)
    margin_step: float = Field(default=0.2, gt=0)
    last_margin: float = Field(default=20.0, gt=0)
    radius: float | None = Field(default=None, gt=0)
    starts: int = Field(default=12, ge=1)
    max_programs: int = Field(default=20_000, ge=1)
    proof: Literal["none", "budget", "full"] = "none"
    proof_nodes: int = Field(default=5_000, ge=1)

    def margins(self) -> list[float]:
        """All margins in their order."""
        count = int(np.floor((self.last_margin - self.first_margin) / self.margin_step + 1e-9)) + 1
        return [self.first_margin + self.margin_step * k for k in range(max(count, 0))]
