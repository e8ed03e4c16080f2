"""What every component must keep to, as checks: for `geco-ray test`, for tests of one's own, and for our own tests.

``check("my_method.py:nearest")`` gives the faults of a component, each a sentence that tells what to do.
"""

from __future__ import annotations

from geco_ray.testing.attributions import check_attribution_method
from geco_ray.testing.changes import check_change_family
from geco_ray.testing.counterfactuals import check_counterfactual_method
from geco_ray.testing.faults import Conformance, Fault
from geco_ray.testing.kinds import check
from geco_ray.testing.paradigms import check_paradigm

__all__ = [
    "Conformance",
    "Fault",
    "check",
    "check_attribution_method",
    "check_change_family",
    "check_counterfactual_method",
    "check_paradigm",
]
