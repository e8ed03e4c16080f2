"""Opening a grid's page, and its address where nothing can be opened."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

from geco_ray.cli.output import PlainConsole
from geco_ray.cli.state.view import page_address, show_page


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was asked to show."""
    found: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not found.append(address))  # type: ignore[func-returns-value]
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    return found


def test_without_a_screen_the_address_is_all_of_stdout(
    opened: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not show_page(tmp_path, PlainConsole(), PlainConsole(stderr=True))
    assert capsys.readouterr().out == page_address(tmp_path) + "\n"
    assert opened == []


def test_with_a_screen_the_page_is_opened(
    opened: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    assert show_page(tmp_path, PlainConsole(), PlainConsole(stderr=True))
    assert opened == [page_address(tmp_path)]
    assert capsys.readouterr().err == ""


def test_an_address_is_absolute_and_escaped(tmp_path: Path) -> None:
    assert page_address(tmp_path / "a b").endswith("/a%20b/index.html")
    assert page_address(Path("runs")) == (Path.cwd() / "runs" / "index.html").as_uri()
