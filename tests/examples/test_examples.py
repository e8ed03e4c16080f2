"""The examples run as they stand, and the README's block with them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
HEAVY = ["torch", "ray", "transformers"]


def test_scores_of_words_and_pieces_need_no_torch(assert_imports_nothing: Callable[..., str]) -> None:
    printed = assert_imports_nothing((EXAMPLES / "score_attributions.py").read_text(), HEAVY)
    rows = re.findall(r"Mass accuracy +([\d.]+) +([\d.]+) +(\d+)", printed)
    assert len(rows) == 2
    assert rows[1][0] == "1.000"
    assert float(rows[0][0]) == pytest.approx(float(rows[0][1]), abs=0.1)


def test_the_notebook_runs(assert_imports_nothing: Callable[..., str]) -> None:
    cells = json.loads((EXAMPLES / "score_attributions.ipynb").read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert "Mass accuracy" in assert_imports_nothing(code, HEAVY)


def test_the_block_of_the_readme_runs(assert_imports_nothing: Callable[..., str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    (block,) = (block for block in blocks if "score_attributions" in block)
    assert len(block.splitlines()) <= 10
    assert "Mass accuracy" in assert_imports_nothing(block, HEAVY)


def test_a_submission_is_made_from_an_export(tmp_path: Path) -> None:
    from geco_ray.cfe import BaseKey, Pool, load_dataset, train_base
    from geco_ray.exchange.counterfactuals import export_base_model
    from geco_ray.submissions import read_counterfactuals

    dataset = load_dataset("breast_cancer")
    base = train_base(BaseKey("breast_cancer", 2026, "paper"), Pool.of(dataset))
    export_base_model(base, dataset, tmp_path / "export")
    words = [sys.executable, str(EXAMPLES / "submission.py"), str(tmp_path / "export")]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (points,) = read_counterfactuals(tmp_path / "nearest.csv").points.values()
    assert len(points) == json.loads((tmp_path / "export" / "card.json").read_text())["requests"]
