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

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
TITLES = r"Leave one out|Bag of words|Duplication|Bisection|Loans"
FILES: dict[str, str] = dict(re.findall(r"^`([\w/.]+)`:\n\n```\w+\n(.*?)^```", PAGE, re.M | re.S))


class Site(NamedTuple):
    """A folder on the import path of its own, as pip would have filled it."""

    folder: Path

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        places = os.pathsep.join(map(str, (self.folder, ROOT)))  # the code under test, not an installed one
        environment = dict(os.environ) | {"PYTHONPATH": places, "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=environment,
        )


def write_page(folder: Path) -> Site:
    """Write the page's files."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Site(folder)


def install(folder: Path) -> Site:
    """Write the page's files, and of its project what pip writes: the metadata with the entry points."""
    write_page(folder)
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


def test_the_page_names_every_field_that_a_component_may_use() -> None:
    from geco_ray.cfe.methods.base import Answer, GenerationTask
    from geco_ray.cfe.training import Pool, TrainingJob
    from geco_ray.geco.attribution.base import AttributionInputs, Batch, Scores
    from geco_ray.geco.paradigms.base import TrainingSetup

    named = {word for code in re.findall(r"`([^`\n]+)`", PAGE) for word in re.findall(r"\w+", code)}
    for kind in (AttributionInputs, Batch, Scores, TrainingSetup, GenerationTask, Answer, Pool, TrainingJob):
        fields = {name for name in (*vars(kind), *kind.__dataclass_fields__) if not name.startswith("_")}
        assert fields - {"of"} <= named, kind


@pytest.mark.slow
def test_pip_builds_and_installs_the_package_of_the_page(tmp_path: Path) -> None:
    site = write_page(tmp_path)
    write_loans(tmp_path / "data" / "tabular" / "loans.csv")
    empty = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", str(empty)], check=True)
    command = [str(empty / "bin" / "pip"), "install", "--quiet", "--no-deps", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # What the package needs is big and already here; what is found of the package itself is what pip installed.
    places = os.pathsep.join([str(ROOT), *(path for path in sys.path if "site-packages" in path)])
    words = ("run", "mine.yaml", "--data-dir", str(tmp_path / "data"), "--executor", "inline", "--quiet", "--json")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine.yaml").write_text(FILES["mine.yaml"])
    done = subprocess.run(
        [str(empty / "bin" / "python"), "-m", "geco_ray", *words],
        capture_output=True, text=True, check=False, cwd=tmp_path / "elsewhere",
        env=dict(os.environ) | {"PYTHONPATH": places, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert site.folder == tmp_path
    records = "".join(path.read_text() for path in (tmp_path / "elsewhere" / "runs").rglob("cells/*/*.json"))
    assert '"distribution": "my-methods"' in records
    assert '"version": "0.1"' in records


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
    page = (tmp_path / "runs" / "report" / "mine" / "tables.md").read_text(encoding="utf-8")
    assert not {"Leave one out", "Bag of words", "Duplication", "Bisection", "Loans"} - set(re.findall(TITLES, page))


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
