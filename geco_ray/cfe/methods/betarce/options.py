"""Options of BetaRCE."""

from __future__ import annotations

from pydantic import Field

from geco_ray.registry import Options


class BetarceOptions(Options):
    """Options of BetaRCE.

    Args:
        members: helper models, trained on bootstrap samples from the base model's initialisation; 32 at most.
        threshold: what the lower bound of the share of agreeing models must exceed.
        confidence: of that bound.
        samples: points per shell.
        shell_step: width of a shell.
        max_start_shells: budget of the search for a counterfactual of the base model.
        max_shells: budget of the search from there.
    """

    members: int = Field(32, ge=1, le=32)
    threshold: float = Field(0.9, ge=0, lt=1)
    confidence: float = Field(0.95, gt=0, lt=1)
    samples: int = Field(100, ge=1)
    shell_step: float = Field(0.1, gt=0)
    max_start_shells: int = Field(200, ge=1)
    max_shells: int = Field(100, ge=1)
