"""The examples run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("survival*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_writes_its_page(script: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script), "page.html"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "<table>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_readme_s_lines_on_survival_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    (block,) = (block for block in blocks if "survival" in block)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
    assert "| New seed | 25 | no change |" in capsys.readouterr().out


def test_the_top_of_the_package_stays_light(assert_imports_nothing: Callable[..., str]) -> None:
    assert_imports_nothing("import geco_ray; geco_ray.survival", ["torch", "ray", "sklearn", "pandas"])
