"""Where the authors' code errs or surprises, as named switches that the two protocols set.

``paper`` does what the released code of "Robust to Which Model Change?" (arXiv 2609.30918) computes; ``corrected`` does
what the method's text says. Everything that is not named here is the same under both. Both count steps and solver nodes
where the released code looks at a clock, and both give each request its own random stream. Both solve LIME's regression
to its exact optimum; ROAR-LIME's option ``regression: lime`` stops where the package's solver does.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from geco_ray.errors import unknown_name


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol, resolved.

    Args:
        wachter_bce_per_feature: count Wachter's cross-entropy d times, as a broadcast over the d distances does.
        lime_centre: what LIME's sample is drawn around.
        lime_tuning_replays_release: tune ROAR-LIME on the draws of the released code, whose one stream of the
            base seed runs through all factuals; the selection hangs on them. Otherwise each factual has its
            own stream, as every request has under both protocols.
        tuning_rows: how many adverse validation rows tuning asks at most.
        tuning_ties_within_noise: tuning takes scores for equal whose difference is within its standard error.
        rbr_exact_gradient: take the exact derivative of RBR's pessimistic loss, not the coded one, whose
            first component has a wrong sign in its last term.
        robx_shared_stream: RobX restarts the stream of the base seed for every request, so all see one noise.
        robx_noise_per_step: RobX draws new noise at each step; otherwise once per request, kept over its
            steps (common random numbers).
        robx_class_includes_half: RobX's stability calls p = 0.5 favourable, as everything else does.
        apas_stops_when_infeasible: APΔS ends at the first margin that no point can reach, instead of trying
            all larger ones.
    """

    wachter_bce_per_feature: bool
    lime_centre: Literal["training_mean", "factual"]
    lime_tuning_replays_release: bool
    tuning_rows: int
    tuning_ties_within_noise: bool
    rbr_exact_gradient: bool
    robx_shared_stream: bool
    robx_noise_per_step: bool
    robx_class_includes_half: bool
    apas_stops_when_infeasible: bool


PROTOCOLS = MappingProxyType(
    {
        "paper": Protocol(
            wachter_bce_per_feature=True,
            lime_centre="training_mean",
            lime_tuning_replays_release=True,
            tuning_rows=25,
            tuning_ties_within_noise=False,
            rbr_exact_gradient=False,
            robx_shared_stream=True,
            robx_noise_per_step=True,
            robx_class_includes_half=False,
            apas_stops_when_infeasible=False,
        ),
        "corrected": Protocol(
            wachter_bce_per_feature=False,
            lime_centre="factual",
            lime_tuning_replays_release=False,
            tuning_rows=200,
            tuning_ties_within_noise=True,
            rbr_exact_gradient=True,
            robx_shared_stream=False,
            robx_noise_per_step=False,
            robx_class_includes_half=True,
            apas_stops_when_infeasible=True,
        ),
    }
)


def resolve_protocol(name: str) -> Protocol:
    """The switches of ``paper`` or ``corrected``.

    Raises:
        UserError: any other name.
    """
    if name not in PROTOCOLS:
        raise unknown_name("protocol of the counterfactual benchmark", name, PROTOCOLS)
    return PROTOCOLS[name]
