"""Guided Backprop (Springenberg et al. 2015; GECOBench, methods): negative gradients are stopped at every ReLU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from geco_ray.geco.attribution.base import ATTRIBUTIONS, AttributionInputs, ModelOptions, Scores
from geco_ray.registry import Options, Profile

if TYPE_CHECKING:
    from torch import Tensor, nn

PLAIN = "Guided Backprop is the plain gradient here: the network has no ReLU module."


@ATTRIBUTIONS.register(
    "guided_backprop",
    title="Guided Backprop",
    options=ModelOptions,
    profile=Profile(order=4, colour="#007A5A", marker="^", aims=True),
)
def guided_backprop(inputs: AttributionInputs, options: Options) -> Scores:
    """Signed sum over the embedding's dimensions of the guided gradient of the scalar, per token.

    Only modules of the type ``torch.nn.ReLU`` are guided, as in Captum; a ReLU that is called as a function can't be
    seen. A network without any has its plain gradient, and after an embedding that is normalised the sum of that is
    zero up to rounding; the note of the result says so.
    """
    from torch import nn

    from geco_ray.geco.passes.gradients import ROUNDING_NOTE, is_rounding, summarize_gradients

    relus = [module for module in inputs.classifier.modules() if isinstance(module, nn.ReLU)]
    if not relus:
        found, notes = inputs.once(summarize_gradients), [PLAIN]
    else:
        with guided(relus):
            found, notes = summarize_gradients(inputs), []
    if is_rounding(found.plain, found.absolute):
        notes.append(ROUNDING_NOTE)
    return Scores(found.plain, note=" ".join(notes) or None)


@contextmanager
def guided(relus: Sequence[nn.Module]) -> Iterator[None]:
    """While it is open, no negative gradient passes back through ``relus``."""

    def clamp(module: nn.Module, inward: tuple[Tensor, ...], outward: tuple[Tensor, ...]) -> tuple[Tensor]:
        return (inward[0].clamp(min=0),)

    hooks = [relu.register_full_backward_hook(clamp) for relu in relus]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
