"""The page on extending is run as written: its package is installed by its entry points and its grid is finished."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
FILES: dict[str, str] = dict(re.findall(r"^`([\w/.]+)`:\n\n```\w+\n(.*?)^```", PAGE, re.M | re.S))


class Site(NamedTuple):
    """A folder on the import path of its own, as pip would have filled it."""

    folder: Path

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        paths = [str(self.folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = dict(os.environ) | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=environment,
        )


def install(folder: Path) -> Site:
    """Write the page's files, and of its project what pip writes: the metadata with the entry points."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        f"[{group}]\n" + "\n".join(f"{name} = {value}" for name, value in points.items())
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n\n".join(groups) + "\n")
    return Site(folder)


def write_loans(path: Path) -> None:
    import numpy as np

    generator = np.random.default_rng(0)
    age, income = generator.integers(18, 80, 160), generator.uniform(5, 100, 160)
    repaid = np.where(income + 0.3 * age + generator.normal(0, 8, 160) > 65, "yes", "no")
    rows = zip(range(160), age, income, repaid, strict=True)
    lines = [f"{customer},{years},{money:.2f},{word}" for customer, years, money, word in rows]
    path.write_text("customer,age,income,repaid\n" + "\n".join(lines) + "\n")


def test_the_page_holds_all_its_files() -> None:
    names = ["leave_one_out", "bag_of_words", "duplication", "bisection"]
    expected = [*(f"my_methods/{name}.py" for name in names), "data/tabular/loans.yaml", "pyproject.toml", "mine.yaml"]
    assert list(FILES) == expected


def test_names_of_a_package_are_listed_without_torch(tmp_path: Path) -> None:
    program = """
import sys
from geco_ray.cli.console import known_names
names = known_names(None, None)
found = [names["geco methods"], names["geco paradigms"], names["cfe families"], names["cfe methods"]]
assert all(new in known for new, known in zip(["leave_one_out", "bag_of_words", "duplication", "bisection"], found))
assert not {"torch", "ray", "sklearn"} & set(sys.modules)
"""
    done = install(tmp_path).python("-c", program)
    assert done.returncode == 0, done.stderr


def test_the_grid_of_the_page_finishes(tmp_path: Path) -> None:
    site = install(tmp_path)
    write_loans(tmp_path / "data" / "tabular" / "loans.csv")
    command = ("-m", "geco_ray", "run", "mine.yaml", "--data-dir", "data", "--root", "runs")
    done = site.python(*command, "--executor", "inline", "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    again = site.python(*command, "--dry-run", "--json")
    plan = json.loads(again.stdout)
    assert plan["left"] == 0
    cells = {stage["stage"]: stage["cells"] for stage in plan["stages"]}
    assert cells == {"train": 1, "explain": 3, "score": 3, "models": 5, "counterfactuals": 2, "validity": 2}
    tables = "\n".join(path.read_text(encoding="utf-8") for path in (tmp_path / "runs").rglob("*.csv"))
    assert "leave_one_out" in tables
    assert "bisection" in tables


def test_a_file_is_registered_by_being_imported(tmp_path: Path) -> None:
    site = install(tmp_path)
    for path in tmp_path.glob("*.dist-info/entry_points.txt"):
        path.unlink()
    program = """
from geco_ray.cfe.methods.base import METHODS
import my_methods.bisection
assert METHODS.get("Bisection").parse_options({"steps": 3}).steps == 3
"""
    done = site.python("-c", program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import no_such_library\n", "No module named 'no_such_library'"),
        ("def broken(:\n", "SyntaxError"),
        (
            "from geco_ray.cfe.methods.base import METHODS\n"
            '@METHODS.register("KD tree")\ndef prepare(task, options): ...\n',
            "is registered by geco_ray.cfe.methods.kdtree and my_methods.bisection",
        ),
    ],
)
def test_a_broken_package_is_named_with_the_way_out(tmp_path: Path, text: str, said: str) -> None:
    site = install(tmp_path)
    (tmp_path / "my_methods" / "bisection.py").write_text(text)
    done = site.python("-m", "geco_ray.grid", "cfe", "--dry-run")
    assert done.returncode == 2
    assert "the plug-in 'bisection' (counterfactual method) cannot be loaded" in done.stderr
    assert "pip uninstall my-methods" in done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
