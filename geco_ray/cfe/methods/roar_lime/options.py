"""Options of ROAR-LIME."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from geco_ray.registry import Options


class RoarLimeOptions(Options):
    """Options of ROAR-LIME.

    Args:
        trade_off: weight of the l1 distance to the factual; ``None``: as tuned for the data set.
        radius: largest change of each surrogate weight and of its intercept.
        learning_rate: step size of Adam.
        samples: size of LIME's sample.
        regression: how LIME's logistic regression ends: ``exact`` at its optimum, ``lime`` where the package's solver
            (scikit-learn's L-BFGS) stops, with weights up to .0075 away from it.
        tolerance: the descent ends when a step changes the loss by no more than this.
        max_steps: budget of the descent; at its end the current point is returned and ``budget_hit`` is set.
    """

    trade_off: float | None = Field(None, ge=0)
    radius: float = Field(0.1, ge=0)
    learning_rate: float = Field(0.001, gt=0)
    samples: int = Field(20_000, ge=2)
    regression: Literal["exact", "lime"] = "exact"
    tolerance: float = Field(1e-4, ge=0)
    max_steps: int = Field(20_000, ge=1)
