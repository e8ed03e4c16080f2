"""Fixtures that tests of every part share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from geco_ray.arithmetic import set_arithmetic

set_arithmetic("pinned")  # before any test imports NumPy, as a run does


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data: ``$GECO_RAY_DATA``, or ``shared/data`` beside the repository; skips without it."""
    named = os.environ.get("GECO_RAY_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("real data is neither at $GECO_RAY_DATA nor at ../shared/data")
    return folder
