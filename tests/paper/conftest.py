"""What the code of today makes of real rows, and what docs/results publishes of the same cells."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

RESULTS = Path(__file__).parents[2] / "docs" / "results"
EVERY_METHOD = "kdtree,wachter,roar_lime,rbr,rnce,apas,robx_balanced,robx_robust,betarce"


@pytest.fixture(scope="session")
def run_today(data_dir: Path) -> Callable[[Path, str, str, str], Path]:
    """Run the grid on base model 2026 and all 25 variants of families: run folder, data sets, methods, families."""

    def run(root: Path, datasets: str, methods: str, families: str) -> Path:
        grid = [
            "cfe", f"cfe.datasets=[{datasets}]", "cfe.base_seeds=[2026]", f"cfe.families=[{families}]",
            f"cfe.methods=[{methods}]", "--executor", "inline", "--root", str(root), "--data-dir", str(data_dir),
            "--json",
        ]  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "geco_ray.grid", *grid], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return root

    return run


@pytest.fixture(scope="session")
def today(tmp_path_factory: pytest.TempPathFactory, run_today: Callable[..., Path]) -> Path:
    """Every method on the two small tables and two families of trained models."""
    root = tmp_path_factory.mktemp("today")
    return run_today(root, "breast_cancer,diabetes", EVERY_METHOD, "bootstrap,label_update")


@pytest.fixture(scope="session")
def published() -> dict[str, pd.DataFrame]:
    """The published tables by name."""
    return {path.stem.removeprefix("counterfactuals_"): pd.read_csv(path) for path in RESULTS.glob("*.csv")}
