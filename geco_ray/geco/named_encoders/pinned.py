"""The encoder of the paper, at the commit that GECOBench pins."""

from __future__ import annotations

from geco_ray.geco.named_encoders.base import ENCODERS


@ENCODERS.register("bert-base-uncased", title="BERT, base, uncased")
def pinned() -> str:
    """The name that the resolver knows."""
    return "bert-base-uncased"
