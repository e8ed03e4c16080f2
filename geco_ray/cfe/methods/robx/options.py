"""Options of the two configurations of RobX; they differ in the quantile alone."""

from __future__ import annotations

from pydantic import Field

from geco_ray.registry import Options


class RobxOptions(Options):
    """Options of both configurations of RobX.

    Args:
        quantile: of the favourable training rows' stability; it sets the threshold, which is at least 0.5.
        variance: of the noise in each feature.
        samples: noise vectors per point, and points per shell of the growing spheres.
        stable_rows: how many stable training rows pull the start.
        pull: share of the way to the row that a step goes.
        max_steps: budget of the walk.
        shell_step: width of a shell.
        max_shells: budget of the growing spheres.
    """

    quantile: float = Field(0.5, ge=0, le=1)
    variance: float = Field(0.01, gt=0)
    samples: int = Field(1000, ge=1)
    stable_rows: int = Field(10, ge=1)
    pull: float = Field(0.1, gt=0, le=1)
    max_steps: int = Field(800, ge=1)
    shell_step: float = Field(0.1, gt=0)
    max_shells: int = Field(800, ge=1)


class RobxRobustOptions(RobxOptions):
    """Those of RobX balanced, but for the quantile."""

    quantile: float = Field(0.9, ge=0, le=1)
