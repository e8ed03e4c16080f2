"""DeepLift with the rescale rule (Shrikumar et al. 2017; GECOBench, methods), by Captum, in batches."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, Batch, ModelOptions, Scores
from geco_ray.registry import Options, Profile

if TYPE_CHECKING:
    from torch import Tensor


class DeepLiftOptions(ModelOptions):
    """``multiply_by_inputs``: contributions, which add up to the change from the baseline, or bare multipliers.

    Null is the protocol's: contributions (``corrected``), or multipliers against a baseline that the authors' code made
    of token ids, the same number in every dimension (``paper``). A ``baseline`` that is given is embedded in both.
    """

    LIBRARY_DEFAULTS: ClassVar = {"multiply_by_inputs": True}

    multiply_by_inputs: bool | None = None


@ATTRIBUTIONS.register(
    "deeplift",
    title="DeepLift",
    options=DeepLiftOptions,
    profile=Profile(order=5, colour="#A8407F", marker="D", aims=True),
)
def deep_lift(inputs: AttributionInputs, options: Options) -> Scores:
    """Signed sum over the embedding's dimensions of contributions or multipliers, per token.

    The rule replaces the gradient of a nonlinear module by (change of its output) / (change of its input). Captum knows
    it for ReLU, Tanh and the like; everything else has its plain gradient, which the note of the result names, and
    which is why contributions do not add up to the change exactly (see ``completeness_gap``).
    """
    import torch

    from geco_ray.geco.passes.gradients import ROUNDING_NOTE, is_rounding

    assert isinstance(options, DeepLiftOptions)
    published = inputs.protocol.deep_lift == "multipliers_from_ids"
    multiply = options.multiply_by_inputs if options.multiply_by_inputs is not None else not published
    values: list[npt.NDArray[np.floating]] = [np.zeros(0)] * len(inputs.rows)
    sizes = list(values)
    changes = np.zeros(len(inputs.rows))
    for batch in inputs.batches(copies=2):  # Captum lays points and baselines one below the other
        with torch.no_grad():
            points, baselines = _points(inputs, batch, ids_as_vectors=published and options.baseline is None)
        found, change = _attribute(inputs, batch, points, baselines, multiply)
        for position, array in batch.sentences(found.sum(2)):
            values[position] = array
        for position, array in batch.sentences(found.abs().sum(2)):
            sizes[position] = array
        changes[batch.positions] = change[: len(batch.positions)].cpu().numpy()
    note = _note(inputs) + (f" {ROUNDING_NOTE}" if is_rounding(values, sizes) else "")
    if not multiply:
        return Scores(values, note=note)
    gaps = np.array([value.sum(dtype=np.float64) for value in values]) - changes
    return Scores(values, completeness_gap=gaps, explained_change=changes, note=note)


def _points(inputs: AttributionInputs, batch: Batch, *, ids_as_vectors: bool) -> tuple[Tensor, Tensor]:
    """Where to attribute and the baseline there, both (n, L, d)."""
    from geco_ray.geco.passes.gradients import gradient_point

    points = gradient_point(inputs.classifier, batch.ids, inputs.protocol)
    if ids_as_vectors:
        return points, batch.baseline_ids[..., None].expand(points.shape).to(points.dtype)
    return points, gradient_point(inputs.classifier, batch.baseline_ids, inputs.protocol)


def _attribute(
    inputs: AttributionInputs, batch: Batch, points: Tensor, baselines: Tensor, multiply: bool
) -> tuple[Tensor, Tensor]:
    """Attributions (n, L, d), and the changes of the explained scalar (n,)."""
    import torch
    from captum.attr import DeepLift
    from torch import nn

    from geco_ray.geco.passes.gradients import explained

    scalar, classes = inputs.scalar or "logit", batch.classes  # before hooks are set: they may need a prediction
    changes: list[Tensor] = []

    class Scalar(nn.Module):
        """The explained scalar of points and baselines."""

        def __init__(self) -> None:
            super().__init__()
            self.classifier = inputs.classifier

        def forward(self, both: Tensor) -> Tensor:
            mask = None if batch.mask is None else batch.mask.repeat(2, 1)
            logits = self.classifier.logits_from_words(both, mask)
            value = explained(self.classifier, logits, classes.repeat(2), scalar)
            ends = value.detach().to(torch.float64)
            changes.append(ends[: len(points)] - ends[len(points) :])
            return value

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it sets hooks, at every call
        method = DeepLift(Scalar(), multiply_by_inputs=multiply)
        found = method.attribute(points.requires_grad_(True), baselines)
    return found.detach(), changes[0]


def _note(inputs: AttributionInputs) -> str:
    """Which modules follow the rule, asked of the model."""
    from captum.attr._core.deep_lift import SUPPORTED_NON_LINEAR
    from torch import nn

    linear = (nn.Linear, nn.Embedding, nn.Dropout, nn.Identity)
    leaves = {type(module) for module in inputs.classifier.modules() if not any(module.children())}
    follow = sorted(kind.__name__ for kind in leaves & set(SUPPORTED_NON_LINEAR))
    others = sorted(kind.__name__ for kind in leaves - set(SUPPORTED_NON_LINEAR) if not issubclass(kind, linear))
    plain = ", ".join([*others, "attention"])
    return f"DeepLift's rule holds for {', '.join(follow) or 'no module'}; the plain gradient for {plain}."
