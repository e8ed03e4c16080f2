"""Registries find what a folder holds, refuse double names, and explain unknown ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from geco_ray.errors import UserError
from geco_ray.registry import NoOptions, OptionError, Options, Registry


class Knobs(Options):
    steps: int = 20
    scale: float = 1
    names: tuple[str, ...] = ("a",)
    mode: str | None = None


def fresh() -> Registry[Any]:
    registry: Registry[Any] = Registry("toy method", "geco_ray.runtime")
    registry._loaded = True  # nothing to import
    return registry


def make(module: str = "first") -> type:
    return type("Thing", (), {"__module__": module})


@pytest.fixture
def registry() -> Registry[Any]:
    found = fresh()
    found.register("integrated_gradients", title="Integrated Gradients", options=Knobs)(make())
    found.register("kdtree", title="KD-tree")(make())
    return found


@pytest.mark.parametrize(
    "name", ["integrated_gradients", "Integrated Gradients", "integrated-gradients", "IntegratedGradients"]
)
def test_names_and_titles_are_found_however_they_are_written(registry: Registry[Any], name: str) -> None:
    assert registry.get(name).name == "integrated_gradients"


def test_names_are_sorted_and_entries_complete(registry: Registry[Any]) -> None:
    assert registry.names() == ["integrated_gradients", "kdtree"]
    entry = registry.get("KD-Tree")
    assert (entry.title, entry.options, entry.module) == ("KD-tree", NoOptions, "first")


def test_a_title_is_the_name_where_none_is_given() -> None:
    registry = fresh()
    registry.register("plain")(make())
    assert registry.get("plain").title == "plain"


@pytest.mark.parametrize(
    ("name", "words"),
    [("kd_tre", "Did you mean 'kdtree'"), ("zzz", "Known: integrated_gradients, kdtree"), ("", "Known: "), ("?", "K")],
)
def test_an_unknown_name_is_explained(registry: Registry[Any], name: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        registry.get(name, where="grid.yaml:3")
    assert str(caught.value).startswith(f"grid.yaml:3: unknown toy method {name!r}. {words}")


@pytest.mark.parametrize("name", ["kdtree", "KD_TREE", "kd tree", "KD-tree"])
@pytest.mark.parametrize("module", ["first", "second"])
def test_a_double_name_is_an_error_also_within_one_file(registry: Registry[Any], name: str, module: str) -> None:
    other = type("Other", (), {"__module__": module})
    with pytest.raises(ValueError, match=f"registered by first and {module}"):
        registry.register(name)(other)
    assert registry.names() == ["integrated_gradients", "kdtree"]


def test_a_title_that_is_anothers_name_is_an_error(registry: Registry[Any]) -> None:
    with pytest.raises(ValueError, match="registered by"):
        registry.register("new", title="kdTree")(make("second"))


def test_the_same_module_imported_again_replaces_its_own_entry(registry: Registry[Any]) -> None:
    again = make()
    registry.register("kdtree", title="KD-tree")(again)
    assert registry.get("kdtree").target is again


# --- options ---


def test_options_are_filled_with_defaults_of_the_right_type(registry: Registry[Any]) -> None:
    entry = registry.get("integrated_gradients")
    assert entry.parse_options(None) == entry.parse_options({}) == Knobs()
    parsed = entry.parse_options({"steps": 5, "scale": 2, "names": ["x", "y"]})
    assert parsed == Knobs(steps=5, scale=2.0, names=("x", "y"))
    assert Knobs().model_dump_json() == '{"steps":20,"scale":1.0,"names":["a"],"mode":null}'  # 1 and 1.0 are one value


@pytest.mark.parametrize(
    ("given", "key", "words"),
    [
        ({"step": 5}, "step", "unknown option 'step' Did you mean 'steps'"),
        ({"steps": "5"}, "steps", "option 'steps' valid integer found '5'"),
        ({"steps": 5.0}, "steps", "option 'steps' valid integer"),
        ({"steps": True}, "steps", "option 'steps' valid integer found True"),
        ({"steps": None}, "steps", "option 'steps' valid integer"),
        ({"scale": False}, "scale", "option 'scale' valid number"),
        ({"scale": "1e-3"}, "scale", "option 'scale' valid number"),
        ({"scale": float("nan")}, "scale", "option 'scale'"),
        ({"scale": float("inf")}, "scale", "option 'scale'"),
        ({"names": "x"}, "names", "option 'names' valid"),
        ({"names": [1]}, "names", "option 'names.0' valid string"),
        ({"mode": 3}, "mode", "option 'mode' valid string"),
        ({"mode": {1, 2}}, "", "an option of 'integrated_gradients' is no plain value"),
    ],
)
def test_a_wrong_option_is_named(registry: Registry[Any], given: dict[str, object], key: str, words: str) -> None:
    with pytest.raises(OptionError) as caught:
        registry.get("integrated_gradients").parse_options(given)
    assert caught.value.key == key
    assert caught.value.remedy
    for word in ["integrated_gradients", *words.split()]:
        assert word in str(caught.value)


def test_options_of_a_component_that_has_none_are_refused(registry: Registry[Any]) -> None:
    with pytest.raises(OptionError, match="unknown option 'k' of 'kdtree'"):
        registry.get("kdtree").parse_options({"k": 1})


def test_options_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Knobs().steps = 3  # type: ignore[misc]


# --- loading a folder ---


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package ``toypack`` with a registry of its own."""
    package = tmp_path / "toypack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "base.py").write_text(
        "from geco_ray.registry import Registry\nTOYS = Registry('toy', 'toypack')\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == "toypack"]:
        monkeypatch.delitem(sys.modules, name)
    return package


def write(folder: Path, name: str, extra: str = "") -> None:
    (folder / f"{name}.py").write_text(
        f"{extra}\nfrom toypack.base import TOYS\n@TOYS.register({name!r})\ndef run() -> None: ...\n", encoding="utf-8"
    )


def toys() -> Registry[Any]:
    import importlib

    for name in [name for name in sys.modules if name.split(".")[0] == "toypack"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    found: Registry[Any] = importlib.import_module("toypack.base").TOYS
    return found


def test_every_module_of_the_folder_is_found(folder: Path) -> None:
    write(folder, "one")
    write(folder, "two", extra="from toypack.base import TOYS as T; T.get('one')")  # looks up a sibling
    assert toys().names() == ["one", "two"]


def test_a_broken_module_is_not_taken_for_an_empty_folder_the_second_time(folder: Path) -> None:
    write(folder, "one")
    write(folder, "two", extra="raise RuntimeError('broken')")
    registry = toys()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken"):
            registry.names()


class _Plugin:
    name, value, dist = "third", "third.party:run", None

    def load(self) -> None:
        raise ImportError("no module named third")


def test_a_broken_plug_in_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = toys()
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [_Plugin()])
    with pytest.raises(UserError, match="plug-in 'third' \\(toy\\) cannot be loaded: ImportError"):
        registry.names()


def test_a_name_of_the_paper_that_this_version_lacks_is_told_so_and_no_other_is_suggested() -> None:
    registry: Registry[Any] = Registry("toy method", "geco_ray.runtime", only_in_paper=["Lost-One"])
    registry._loaded = True
    registry.register("lost_two")(make())
    with pytest.raises(UserError, match="'Lost-One' is in the paper, not in this version") as error:
        registry.get("lost one")
    assert "Did you mean" not in str(error.value)
