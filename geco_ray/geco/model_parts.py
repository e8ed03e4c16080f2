"""The named parts of a BERT classifier: what a paradigm trains and what it draws anew.

``embeddings`` are the word, position and type tables with their layer norm; ``encoder`` the attention layers;
``pooler`` the pretrained layer over the first position; ``head`` the new linear layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from geco_ray.errors import UserError, suggest

ModelPart = Literal["embeddings", "encoder", "pooler", "head"]
MODEL_PARTS: tuple[ModelPart, ...] = ("embeddings", "encoder", "pooler", "head")


def check_parts(where: str, trained: Sequence[str], redrawn: Sequence[str]) -> None:
    """Refuse parts that no model has.

    Raises:
        UserError: an unknown part, or a head that is not drawn (a pretrained encoder brings none).
    """
    for name in (*trained, *redrawn):
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
