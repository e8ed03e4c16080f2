"""Options of RBR."""

from __future__ import annotations

from pydantic import Field

from geco_ray.registry import Options


class RbrOptions(Options):
    """Options of RBR; the defaults are the middle of the ranges that its authors swept.

    Args:
        candidates: nearest favourable training rows whose segments are searched for the boundary.
        segment_steps: equally spaced points on a segment, both ends included.
        samples: points in the ball around the boundary point.
        radius_share: the ball's radius as a share of the largest distance between two training rows.
        extra_distance: how much farther than the boundary point (l1) the answer may lie.
        sigma: bandwidth of the two densities.
        optimistic_radius: Wasserstein radius of the other class.
        pessimistic_radius: Wasserstein radius of the wanted class.
        max_steps: budget of the descent; at its end the current point is returned.
        patience: steps in a row without improvement that end the descent.
        tolerance: what counts as improvement.
    """

    candidates: int = Field(1000, ge=1)
    segment_steps: int = Field(100, ge=2)
    samples: int = Field(200, ge=2)
    radius_share: float = Field(0.2, gt=0)
    extra_distance: float = Field(0.2, ge=0)
    sigma: float = Field(1.0, gt=0)
    optimistic_radius: float = Field(0.5, ge=0)
    pessimistic_radius: float = Field(0.5, ge=0)
    max_steps: int = Field(500, ge=1)
    patience: int = Field(10, ge=1)
    tolerance: float = Field(1e-10, ge=0)
