"""Fixtures shared by the tests of the GECO side."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def geco_data() -> Path:
    """The folder with the released files, from ``$GECO_RAY_DATA`` or beside the repository; skips without them."""
    named = os.environ.get("GECO_RAY_DATA")
    folder = Path(named) if named else Path(__file__).parents[3] / "shared" / "data"
    if not any((root / "binary_gender_all" / "train.jsonl").is_file() for root in (folder / "geco", folder)):
        pytest.skip("the GECO files are neither in $GECO_RAY_DATA nor in ../shared/data")
    return folder
