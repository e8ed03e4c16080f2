"""The named parts of a classifier on an encoder: what a paradigm trains and what it redraws.

``embeddings`` are the tables of words, positions and types with their layer norm, as far as the family has them;
``encoder`` is everything between them and the head (a projection of the embeddings is the encoder's); ``pooler`` the
pretrained layer over the first position (BERT and ALBERT); ``head`` what the family's sequence classifier adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from geco_ray.errors import UserError, suggest

ModelPart = Literal["embeddings", "encoder", "pooler", "head"]
MODEL_PARTS: tuple[ModelPart, ...] = ("embeddings", "encoder", "pooler", "head")
ALL = "all"
"""Among trained parts: every part that the model has."""


def check_parts(where: str, trained: Sequence[str], redrawn: Sequence[str]) -> None:
    """Refuse parts that no model has.

    Raises:
        UserError: an unknown part, or a head that is not drawn (a pretrained encoder brings none).
    """
    for name in (*(() if tuple(trained) == (ALL,) else trained), *redrawn):
        if name not in MODEL_PARTS:
            raise UserError(
                f"the model has no part {name!r}",
                where=where,
                expected=f"parts out of {', '.join(MODEL_PARTS)}",
                remedy=suggest(name, MODEL_PARTS),
            )
    if "head" not in redrawn:
        raise UserError(
            "the head is not drawn",
            where=where,
            found=tuple(redrawn),
            expected="'head' among the redrawn parts, since the encoder has no head of its own",
        )


def parts_of(family: str, has: Sequence[ModelPart], named: Sequence[str]) -> tuple[ModelPart, ...]:
    """The parts of a family's models that are ``named``, in the model's order; ``("all",)`` names every one.

    Raises:
        UserError: the family has no part of that name.
    """
    if tuple(named) == (ALL,):
        return tuple(has)
    for name in named:
        if name not in has:
            raise UserError(
                f"an encoder of the family {family} has no part {name!r}",
                expected=f"parts out of {', '.join(has)}",
                remedy="Take a paradigm that does not name it, or an encoder that has it",
            )
    return tuple(part for part in has if part in named)
