"""Where things stand: who may import whom, and how long a file and a function may be.

Everything is read from the syntax trees, so an import inside a function or under ``TYPE_CHECKING`` counts as well. The
lists of known exceptions may only shrink: one that is no longer needed fails as loudly as a new one.
"""

from __future__ import annotations

import ast
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("geco_ray", "analysis")

# What a room may import of ours beside itself. A folder or module at the top of geco_ray is a room; so is analysis.
GROUND = frozenset(
    {
        "geco_ray", "errors", "registry", "seeds", "device", "arithmetic", "cells", "table", "terminal", "files",
        "plugins", "submissions",
    }
)  # fmt: skip
LAYERS: dict[str, frozenset[str]] = {
    **{name: frozenset({"geco_ray", "errors", "registry"}) for name in GROUND},
    "terminal": frozenset({"table"}),
    "registry": frozenset({"errors", "plugins"}),
    "plugins": frozenset({"errors", "files"}),
    "submissions": frozenset({"errors", "files", "registry"}),
    "scaffold": frozenset({"errors", "files"}),
    "testing": GROUND | {"geco", "cfe"},
    "exchange": GROUND | {"geco", "cfe"},
    "geco": GROUND - {"cells"},
    "cfe": GROUND - {"cells"},
    "ledger": GROUND,
    "plan": GROUND | {"ledger"},
    "experiments": GROUND | {"ledger", "plan", "geco", "cfe", "exchange"},
    "runtime": GROUND | {"ledger", "plan", "experiments"},
    "analysis": GROUND | {"ledger", "plan", "geco", "cfe"},
    "cli": GROUND
    | {"ledger", "plan", "experiments", "runtime", "analysis", "geco", "cfe", "exchange", "testing", "scaffold"},
    "grid": frozenset({"cli"}),
    "__main__": frozenset({"cli"}),
}
# Ray is the business of two rooms; these rooms leave torch alone as well, even inside functions.
RAY_ROOMS = frozenset({"runtime", "cli"})
TORCHLESS_ROOMS = frozenset(
    {"analysis", "plan", "ledger", "files", "cells", "registry", "table", "errors", "plugins", "submissions"}
)
# Importing these loads neither, however long the way: listing, planning and reading take a second.
LIGHT_ROOMS = frozenset({"analysis", "plan", "ledger", "cells", "registry", "grid", "__main__"})
HEAVY = ("torch", "ray")

FILE_LINES, FUNCTION_LINES, MEDIAN_LINES, FOLDER_MODULES, TOP_MODULES = 300, 40, 120, 16, 10

KNOWN_CIRCLES: frozenset[tuple[str, ...]] = frozenset()
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS = {
    "geco_ray/cfe/milp/proof.py:prove": "one loop whose bound, point and known layers change together",
    "geco_ray/cfe/milp/program.py:ball_program": "one formulation, layer after layer, read beside its paper",
}


class Import(NamedTuple):
    """One import: ``name`` is a module, ours or not, ``when`` is ``top``, ``call`` or ``typing``."""

    name: str
    when: str
    line: int


@dataclass(frozen=True)
class Module:
    """A file of a tree: its name (``geco_ray.plan.config``), its path and its syntax tree."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def room(self) -> str:
        """The folder or file at the top of ``geco_ray`` that it belongs to, or ``analysis``."""
        return room_of(self.name)


def room_of(name: str) -> str:
    package, _, rest = name.partition(".")
    return rest.partition(".")[0] or package if package == "geco_ray" else package


@dataclass(frozen=True)
class Tree:
    """The modules of ``packages`` below ``root``."""

    root: Path
    packages: tuple[str, ...] = PACKAGES

    @cached_property
    def modules(self) -> dict[str, Module]:
        found = {}
        for path in sorted(path for package in self.packages for path in (self.root / package).rglob("*.py")):
            parts = path.relative_to(self.root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = Module(name, path, ast.parse(path.read_text(encoding="utf-8")))
        return found

    @cached_property
    def imports(self) -> dict[str, list[Import]]:
        return {name: list(self._imports(module, module.tree, "top")) for name, module in self.modules.items()}

    def _imports(self, module: Module, node: ast.AST, when: str) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, when, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = ".".join([*_package(module, node.level), *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                yield Import(inner if inner in self.modules else source, when, node.lineno)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            when = "call"
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for branch, then in ((node.body, "typing"), (node.orelse, when)):
                for statement in branch:
                    yield from self._imports(module, statement, then)
            return
        for child in ast.iter_child_nodes(node):
            yield from self._imports(module, child, when)

    def relative(self, module: Module) -> str:
        return module.path.relative_to(self.root).as_posix()


def _package(module: Module, level: int) -> list[str]:
    """The package that a relative import of ``level`` dots starts from; nothing for an absolute one."""
    parts = module.name.split(".") if module.path.name == "__init__.py" else module.name.split(".")[:-1]
    return parts[: len(parts) - level + 1] if level else []


def circles(tree: Tree) -> set[tuple[str, ...]]:
    """Groups of modules that reach each other over direct imports of any kind."""
    direct = {name: {i.name for i in found if i.name in tree.modules} for name, found in tree.imports.items()}
    reached = {name: _closure(name, direct) for name in direct}
    return {
        tuple(sorted({name} | {other for other in reached[name] if name in reached[other]}))
        for name in direct
        if name in reached[name]
    }


def _closure(start: str, direct: Mapping[str, Iterable[str]]) -> set[str]:
    """Everything reached from ``start`` in one step or more."""
    seen: set[str] = set()
    waiting = list(direct.get(start, ()))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(direct.get(name, ()))
    return seen


def layer_breaks(tree: Tree) -> list[str]:
    """Imports of a room that the room may not make; a room without a line in :data:`LAYERS` is one too."""
    problems = []
    for name, module in tree.modules.items():
        allowed = LAYERS.get(module.room)
        if allowed is None:
            problems.append(f"{tree.relative(module)}: {module.room} has no line in LAYERS")
            continue
        for line in tree.imports[name]:
            room = room_of(line.name)
            if line.name.partition(".")[0] in tree.packages and room not in allowed | {module.room}:
                problems.append(f"{tree.relative(module)}:{line.line}: {module.room} imports {line.name}")
    return problems


def heavy_imports(tree: Tree) -> list[str]:
    """Where torch or Ray is imported by a room that leaves it to others, directly or by the modules it loads."""
    at_once = {name: {i.name for i in found if i.when == "top"} for name, found in tree.imports.items()}
    problems = []
    for name, module in tree.modules.items():
        rooms = {"torch": module.room in TORCHLESS_ROOMS, "ray": module.room not in RAY_ROOMS}
        refused = {heavy for heavy, refuses in rooms.items() if refuses}
        for line in tree.imports[name]:
            if line.name.partition(".")[0] in refused:
                problems.append(f"{tree.relative(module)}:{line.line}: {module.room} imports {line.name}")
        loaded = _closure(name, at_once) if module.room in LIGHT_ROOMS else set()
        for heavy in sorted({other.partition(".")[0] for other in loaded} & set(HEAVY)):
            problems.append(f"{tree.relative(module)}: importing it loads {heavy}")
    return problems


def long_files(tree: Tree) -> set[str]:
    """Files of more than :data:`FILE_LINES` lines."""
    return {tree.relative(module) for module in tree.modules.values() if _lines(module) > FILE_LINES}


def _lines(module: Module) -> int:
    return len(module.path.read_text(encoding="utf-8").splitlines())


def long_functions(tree: Tree) -> set[str]:
    """Functions of more than :data:`FUNCTION_LINES` lines from ``def`` to the end, as ``path:name``."""
    return {
        f"{tree.relative(module)}:{node.name}"
        for module in tree.modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES
    }


def crowded_folders(tree: Tree) -> list[str]:
    """Folders with more modules beside ``__init__`` than fit: 16, and 10 at the top of geco_ray."""
    counts: dict[str, int] = {}
    for module in tree.modules.values():
        if module.path.name != "__init__.py":
            folder = module.path.parent.relative_to(tree.root).as_posix()
            counts[folder] = counts.get(folder, 0) + 1
    most = {"geco_ray": TOP_MODULES}
    return [f"{folder}: {n}" for folder, n in sorted(counts.items()) if n > most.get(folder, FOLDER_MODULES)]


def median_lines(tree: Tree, package: str) -> float:
    """The middle length of a package's files, ``__init__`` left out."""
    return statistics.median(
        _lines(module)
        for module in tree.modules.values()
        if module.name.partition(".")[0] == package and module.path.name != "__init__.py"
    )


TREE = Tree(ROOT)


def assert_only_known(found: Iterable[object], known: Iterable[object], remedy: str) -> None:
    """Fail for what is found and not known, and for what is known and no longer found."""
    new, gone = set(found) - set(known), set(known) - set(found)
    assert not new, f"new: {sorted(map(str, new))}. {remedy}"
    assert not gone, f"no longer there: {sorted(map(str, gone))}. Take it off the list of known exceptions"


def test_no_module_imports_itself_by_a_detour() -> None:
    assert_only_known(circles(TREE), KNOWN_CIRCLES, "Move what both need into a module below them")


def test_rooms_import_only_what_lies_below_them() -> None:
    assert layer_breaks(TREE) == []


def test_torch_and_ray_stay_where_they_belong() -> None:
    assert heavy_imports(TREE) == []


def test_every_layer_is_a_room() -> None:
    assert set(LAYERS) == {module.room for module in TREE.modules.values()}
    assert set(LAYERS) >= RAY_ROOMS | TORCHLESS_ROOMS | LIGHT_ROOMS


def test_files_have_at_most_300_lines() -> None:
    assert_only_known(long_files(TREE), LONG_FILES, f"Split it: {FILE_LINES} lines at most")


def test_functions_have_at_most_40_lines() -> None:
    assert_only_known(long_functions(TREE), LONG_FUNCTIONS, f"Split it: {FUNCTION_LINES} lines at most")


def test_folders_can_be_taken_in_at_a_glance() -> None:
    assert crowded_folders(TREE) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_median_file_is_short(package: str) -> None:
    assert median_lines(TREE, package) <= MEDIAN_LINES


def test_a_child_that_imports_something_heavy_is_told(assert_imports_nothing: Callable[..., str]) -> None:
    assert assert_imports_nothing("import sys; print(sys.argv[1])", ["decimal"], "word") == "word"
    with pytest.raises(AssertionError, match="decimal"):
        assert_imports_nothing("import decimal", ["decimal", "torch"])
    with pytest.raises(AssertionError, match="mistake"):
        assert_imports_nothing("raise ValueError('a mistake')", [])


# Each rule, seen to fail on a small tree.

Plant = Callable[[Mapping[str, str]], Tree]


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    """Write a small tree from paths and texts."""

    def write(files: Mapping[str, str]) -> Tree:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return Tree(tmp_path)

    return write


@pytest.mark.parametrize(
    "back",
    [
        "from geco_ray.geco import words\n",
        "from .words import count\n",
        "def read():\n    from geco_ray.geco.words import count\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import geco_ray.geco.words\n",
    ],
)
def test_a_circle_is_seen_wherever_the_import_stands(plant: Plant, back: str) -> None:
    tree = plant({"geco_ray/geco/words.py": "from geco_ray.geco.rows import Row\n", "geco_ray/geco/rows.py": back})
    assert circles(tree) == {("geco_ray.geco.rows", "geco_ray.geco.words")}


def test_a_line_of_imports_is_no_circle(plant: Plant) -> None:
    tree = plant({"geco_ray/geco/a.py": "from geco_ray.geco import b\n", "geco_ray/geco/b.py": "import json\n"})
    assert circles(tree) == set()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("geco_ray/geco/words.py", "from geco_ray.ledger import Ledger\n"),
        ("geco_ray/cfe/mlp.py", "def f():\n    from geco_ray.geco.words import word_scores\n"),
        ("geco_ray/experiments/base.py", "from geco_ray.runtime.run import run_plan\n"),
        ("geco_ray/runtime/run.py", "from geco_ray import cli\n"),
        ("analysis/load.py", "import geco_ray.experiments.base\n"),
        ("geco_ray/errors.py", "from geco_ray.ledger.storage import LocalStorage\n"),
    ],
)
def test_an_import_from_above_is_seen(plant: Plant, path: str, text: str) -> None:
    above = dict.fromkeys(["geco_ray/cli/__init__.py", "geco_ray/ledger/__init__.py", "geco_ray/runtime/run.py"], "")
    (problem,) = layer_breaks(plant(above | {path: text}))
    assert problem.startswith(f"{path}:")


def test_a_room_without_a_layer_is_seen(plant: Plant) -> None:
    assert layer_breaks(plant({"geco_ray/attic/a.py": ""})) == ["geco_ray/attic/a.py: attic has no line in LAYERS"]


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("geco_ray/cfe/mlp.py", "def f():\n    import ray\n", "geco_ray/cfe/mlp.py:2: cfe imports ray"),
        ("analysis/load.py", "def f():\n    from torch import nn\n", "analysis/load.py:2: analysis imports torch"),
        ("geco_ray/plan/a.py", "import geco_ray.cfe.b\n", "geco_ray/plan/a.py: importing it loads torch"),
    ],
)
def test_a_heavy_import_is_seen(plant: Plant, path: str, text: str, problem: str) -> None:
    assert heavy_imports(plant({"geco_ray/cfe/b.py": "import torch.nn\n", path: text})) == [problem]


def test_a_heavy_import_for_types_or_in_a_function_loads_nothing(plant: Plant) -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\ndef f():\n    import torch\n"
    assert heavy_imports(plant({"geco_ray/cfe/b.py": text, "geco_ray/plan/a.py": "import geco_ray.cfe.b\n"})) == []


def test_long_files_and_functions_are_seen(plant: Plant) -> None:
    body = "    pass\n" * FUNCTION_LINES
    tree = plant({"analysis/a.py": f"def f():\n{body}", "analysis/b.py": "\n" * (FILE_LINES + 1), "analysis/c.py": ""})
    assert (long_files(tree), long_functions(tree)) == ({"analysis/b.py"}, {"analysis/a.py:f"})
    assert median_lines(tree, "analysis") == FUNCTION_LINES + 1


def test_crowded_folders_are_seen(plant: Plant) -> None:
    crowd = {f"{folder}/m{i}.py": "" for folder, n in (("geco_ray", 11), ("analysis", 17)) for i in range(n)}
    assert crowded_folders(plant(crowd)) == ["analysis: 17", "geco_ray: 11"]


@pytest.mark.parametrize(("found", "problem"), [({"a", "b"}, "new"), (set(), "no longer there")])
def test_a_list_of_known_exceptions_only_shrinks(found: set[str], problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        assert_only_known(found, {"a"}, "Mend it")
