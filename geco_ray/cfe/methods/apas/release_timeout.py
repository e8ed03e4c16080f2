"""Which APΔS requests the released code's clock would have dropped, told from counted margins and no clock.

The released code returns nothing once a request has taken 30 seconds, so its averages are over the requests that its
machine finished. Ours finish all. The seconds that one margin cost the released code were measured once per data set
(its big-M program with Gurobi on one machine); where even the cheapest of them exceeds the cap the request counts as
dropped, where even the dearest does not it counts as kept, and in between we do not know and say so.
"""

from __future__ import annotations

from types import MappingProxyType

CAP_SECONDS = 30.0

SECONDS_PER_MARGIN = MappingProxyType(
    {
        # Lowest and highest seconds of a whole request, over the margins that requests of that cost try.
        "breast_cancer": (7.0 / 2, 114.0 / 4),
        "diabetes": (0.8 / 2, 8.0 / 2),
        "wine_quality": (8.0 / 4, 26.0 / 11),
        "heloc": (200.0 / 6, float("inf")),  # four of four requests were unfinished at 200 seconds
    }
)

UNMEASURED = "the released code's cost was not measured on this data set"
UNDECIDED = "the released code's measured cost spans its cap of 30 s"


def dropped_by_cap(dataset: str, margins: int) -> tuple[bool | None, str | None]:
    """Whether the cap would have dropped a request that tried ``margins`` margins, and why that is unknown if it is."""
    if dataset not in SECONDS_PER_MARGIN:
        return None, UNMEASURED
    low, high = SECONDS_PER_MARGIN[dataset]
    if margins * low > CAP_SECONDS:
        return True, None
    if margins * high <= CAP_SECONDS:
        return False, None
    return None, UNDECIDED
