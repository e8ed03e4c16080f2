"""Folders of data named by variables: ``~`` is expanded, and what is not there is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from geco_ray.errors import GecoRayWarning, UserError
from geco_ray.files.roots import cache_dir, data_roots, find_cache_dir

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="HOME is the rule of other platforms")


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home folder, and no variable that names another."""
    for name in ("GECO_RAY_DATA", "GECO_RAY_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whom nobody knows."""

    def unknown(path: Path) -> Path:
        if str(path).startswith("~"):
            raise RuntimeError("Could not determine home directory.")
        return path

    monkeypatch.setattr(Path, "expanduser", unknown)
    monkeypatch.setattr(Path, "home", lambda: unknown(Path("~")))


def test_a_tilde_is_expanded_in_both_variables(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "data").mkdir()
    monkeypatch.setenv("GECO_RAY_DATA", "~/data")
    monkeypatch.setenv("GECO_RAY_CACHE", "~/cache")
    assert data_roots(None) == [home / "data", home / "cache"]
    assert data_roots(Path("~/other")) == [home / "other"]


def test_a_missing_folder_is_said_with_its_variable(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GECO_RAY_DATA", "~/dtaa")
    with pytest.warns(GecoRayWarning, match=rf"GECO_RAY_DATA: .*does not exist \({home}/dtaa\)"):
        assert home / "dtaa" in data_roots(None)
    (home / "dtaa").write_text("")
    with pytest.warns(GecoRayWarning, match="is a file"):
        data_roots(None)


def test_the_command_line_says_it_in_one_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GECO_RAY_DATA", str(home / "gone"))
    words = [sys.executable, "-m", "geco_ray", "ls", "datasets"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    assert "diabetes" in done.stdout
    assert done.stderr.splitlines() == [
        f"warning: GECO_RAY_DATA: the folder of data does not exist ({home / 'gone'}). Correct or unset the variable."
    ]


@pytest.mark.usefixtures("no_home")
def test_a_user_without_a_home_has_no_cache_until_one_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_cache_dir() is None
    assert data_roots(None) == []
    with pytest.raises(UserError, match="GECO_RAY_CACHE"):
        cache_dir()
    monkeypatch.setenv("GECO_RAY_DATA", "~/data")
    with pytest.raises(UserError, match=r"GECO_RAY_DATA: the home folder is not known.*~/data"):
        data_roots(None)
    monkeypatch.setenv("GECO_RAY_DATA", str(home))
    monkeypatch.setenv("GECO_RAY_CACHE", str(home / "c"))
    assert data_roots(None) == [home, home / "c"]
