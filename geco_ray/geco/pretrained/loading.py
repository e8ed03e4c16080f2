"""Loading an encoder's weights, and its language-modeling head where it has one; never with random numbers in a gap."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from geco_ray.errors import UserError
from geco_ray.geco.backbones.base import Backbone
from geco_ray.geco.encoders import EncoderSource, encoder_family, locate_encoder

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class MaskedLm:
    """An encoder with its pretrained language-modeling head: ``whole`` is the library's model on ``backbone``."""

    backbone: Backbone
    whole: nn.Module

    def scores(self, states: Tensor) -> Tensor:
        """Scores of the whole vocabulary from states (..., d)."""
        return self.backbone.decode(self.whole, states)


def load_backbone(source: EncoderSource) -> Backbone:
    """The encoder, float32, frozen, in eval mode, on the CPU.

    Raises:
        UserError: it is not available, of no known family, or its file lacks weights (for instance the pooler's).
    """
    family = encoder_family(source)
    model, missing = _load(source, family.model_class, **family.load_arguments)
    if missing:  # they would be filled with random numbers in silence
        raise UserError(f"the weights of encoder {source.name!r} lack {missing[0]!r}", where=source.location)
    return family(model)


def load_masked_lm(source: EncoderSource) -> MaskedLm:
    """The encoder with its language-modeling head.

    Raises:
        UserError: as :func:`load_backbone`; also where family or weight file have no such head.
    """
    family = encoder_family(source)
    if not family.masked_class:
        raise UserError(f"encoder {source.name!r} has no head that fills in a word", where=source.location)
    whole, missing = _load(source, family.masked_class)
    if missing:
        raise UserError(f"the weights of encoder {source.name!r} lack {missing[0]!r}", where=source.location)
    return MaskedLm(family(whole.base_model), whole)


def _load(source: EncoderSource, class_name: str, **arguments: Any) -> tuple[Any, list[str]]:
    """The library's model, and the names of the weights that its file lacks."""
    import torch
    import transformers

    folder = locate_encoder(source)
    kind = getattr(transformers, class_name)
    try:
        with torch.random.fork_rng(devices=[]), _quiet():
            model, report = kind.from_pretrained(
                str(folder),
                local_files_only=True,
                use_safetensors=True,
                output_loading_info=True,
                dtype=torch.float32,
                **arguments,
            )
    except (OSError, ValueError, RuntimeError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise UserError(f"encoder {source.name!r} cannot be loaded: {first}", where=str(folder)) from None
    missing = sorted(report["missing_keys"])
    return model.eval().requires_grad_(False), missing


@contextmanager
def _quiet() -> Iterator[None]:
    """No bar, and no table of weights that are not needed; what is missing is looked at above."""
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
