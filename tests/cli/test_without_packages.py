"""Where torch, Ray or another package is not installed, what needs it says so and everything else works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = """
import importlib.abc, sys
class Without(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "ray", "transformers", "captum", "lime"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Without())
"""


def without(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True)


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return without(f"from geco_ray.cli import main; main({list(words)})")


@pytest.mark.parametrize(
    "words",
    [
        ("ls",),
        ("ls", "methods"),
        ("ls", "paradigms"),
        ("plan", "full"),
        ("doctor",),
        ("data", "bias", "demo_binary_all"),
    ],
    ids=" ".join,
)
def test_what_needs_none_of_them_works(words: tuple[str, ...]) -> None:
    done = command(*words)
    assert done.returncode == 0, done.stderr


def test_a_run_names_the_package_and_how_to_install_it(tmp_path: Path) -> None:
    done = command("run", "demo", "--root", str(tmp_path / "runs"))
    assert done.returncode == 3
    assert "needs the package" in done.stderr
    assert "pip install" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_folder_is_read_and_reported(tmp_path: Path) -> None:
    run = "import geco_ray.grid, sys; from geco_ray.cli import main; main({})"
    grid = ["run", "demo", "only=cfe", "cfe.methods=[kdtree]", "cfe.variants=1", "cfe.base_seeds=[2026]"]
    grid += ["cfe.families=[bounded_parameter]", "--root", str(tmp_path), "--executor", "inline", "--quiet"]
    made = subprocess.run([sys.executable, "-c", run.format(grid)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    read = command("report", *grid[1:7], "--root", str(tmp_path))
    assert read.returncode == 0, read.stderr
    assert "KD-tree" in read.stdout
