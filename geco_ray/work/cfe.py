"""Robust counterfactuals' stages (to come)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from geco_ray.cells import Cell


def check_cfe_inputs(cells: Sequence[Cell], data_dir: Path | None) -> None:
    """Nothing yet."""
