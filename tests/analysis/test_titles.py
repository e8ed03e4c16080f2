"""What a reader sees is what was registered: titles of plug-ins and of data cards reach tables, figures and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.cfe import styles as cfe_styles
from analysis.geco import styles as geco_styles
from analysis.refresh import refresh_report
from analysis.report import read_numbers, write_report
from analysis.styles import Names
from geco_ray.cfe.changes.base import FAMILIES
from geco_ray.cfe.methods.base import METHODS
from geco_ray.geco.attribution.base import ATTRIBUTIONS
from geco_ray.geco.paradigms.base import PARADIGMS
from geco_ray.ledger import Ledger
from geco_ray.registry import Registry

CARD = "name: loans\ntitle: {}\ntarget: repaid\nfavourable: ['yes']\n"


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Registry[Any], str, str], None]]:
    """Registers a component as a plug-in does, until the test ends."""

    def add(registry: Registry[Any], name: str, title: str) -> None:
        registry.names()
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
        registry.register(name, title=title)(object)

    return add


def seen(ledger: Any, folder: Path, data_dir: Path | None = None) -> tuple[str, str, str]:
    """The report's tables, its figures (the letters of an SVG are shapes, its comments say which) and its page."""
    paths = write_report(ledger, None, folder, "titles", read_numbers(ledger, data_dir=data_dir))
    pictures = "".join(path.read_text(encoding="utf-8") for path in paths if path.suffix == ".svg")
    return (folder / "tables.md").read_text("utf-8"), pictures, (folder / "index.html").read_text("utf-8")


def test_titles_of_plug_ins_reach_tables_figures_and_page(
    kit: Any, register: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    register(METHODS, "theirs", "Their Counterfactual")
    register(FAMILIES, "shift", "Their Shift")
    register(ATTRIBUTIONS, "gaze", "Their Gaze")
    register(PARADIGMS, "head", "Their Head")
    monkeypatch.setitem(kit.CFE_METHODS, "theirs", (0.9, 0.1, 1.0, 1.0))
    monkeypatch.setitem(kit.METHODS, "gaze", 0.5)
    monkeypatch.setitem(kit.PARADIGMS, "head", 0.1)
    ledger = kit.FakeLedger()
    kit.fill_geco(ledger, ("demo_binary_all",), ("BERT-C", "head"), ("saliency", "gaze"), 2, 6)
    kit.fill_cfe(ledger, ("heloc",), ("kdtree", "theirs"), ("seed", "shift"), (2026,), 2, 4)
    for shown in seen(ledger, tmp_path):
        for title in ("Their Counterfactual", "Their Shift", "Their Gaze", "Their Head"):
            assert title in shown


def test_the_title_of_a_users_card_reaches_tables_figures_and_page(kit: Any, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "loans.yaml").write_text(CARD.format("Loans of a Bank"))
    ledger = kit.FakeLedger()
    kit.fill_cfe(ledger, ("loans",), ("kdtree",), ("seed",), (2026,), variants=2, requests=4)
    assert all("Loans of a Bank" in shown for shown in seen(ledger, tmp_path / "with", tmp_path / "data"))
    assert "Counterfactuals: loans," in seen(ledger, tmp_path / "without")[0]


def test_what_is_not_installed_here_is_called_as_in_the_record_else_by_its_name(
    kit: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("gone", "unheard"):
        monkeypatch.setitem(kit.CFE_METHODS, name, (0.9, 0.1, 1.0, 1.0))
    ledger = kit.FakeLedger()
    kit.fill_cfe(ledger, ("loans",), ("kdtree", "gone", "unheard"), ("seed",), (2026,), variants=2, requests=4)
    for record, _ in ledger.cells.values():
        if record.params.get("method") == "gone":
            record.info["titles"] = {"method": "Gone Method", "dataset": "Loans Elsewhere"}
            record.info["profiles"] = {"method": {"order": 0, "colour": "#123456", "aims": False, "later": 1}}
        if record.params.get("method") == "kdtree":
            record.info["titles"] = {"method": "An Old Title"}
    tables = seen(ledger, tmp_path)[0]
    assert "| Gone Method |" in tables
    assert "Counterfactuals: Loans Elsewhere," in tables
    assert "| unheard |" in tables
    assert "| KD-tree |" in tables
    assert tables.index("| Gone Method |") < tables.index("| KD-tree |") < tables.index("| unheard |")
    (gone,) = [each.titles.kind("method") for each in read_numbers(ledger) if each.topic.name == "cfe"]
    assert (gone.style("gone").colour, gone.style("gone").hollow) == ("#123456", True)
    assert not gone.style("unheard").hollow  # nobody has said that it aims elsewhere


def test_another_title_writes_the_report_again_and_the_same_one_does_not(kit: Any, tmp_path: Path) -> None:
    data, ledger = tmp_path / "data", Ledger(tmp_path / "runs")
    data.mkdir()
    cell = kit.CounterfactualCell(kit.BaseCell("loans", "0" * 8, 2026, "paper"), "kdtree", kit.NoOptions(), "paper")
    ledger.put(cell, kit.counterfactual_table(["found"], [1.0]))

    def page(title: str) -> tuple[int, str]:
        (data / "loans.yaml").write_text(CARD.format(title))
        path = refresh_report(ledger, [cell], "g", None, data) / "index.html"
        return path.stat().st_mtime_ns, path.read_text(encoding="utf-8")

    first = page("Before")
    assert page("Before") == first
    assert "Counterfactuals: After," in page("After")[1]


@pytest.mark.parametrize(
    ("names", "registry"),
    [
        (geco_styles.PARADIGMS, PARADIGMS),
        (geco_styles.METHODS, ATTRIBUTIONS),
        (cfe_styles.METHODS, METHODS),
        (cfe_styles.FAMILIES, FAMILIES),
    ],
)
def test_every_registered_name_is_called_by_its_registered_title(names: Names, registry: Registry[Any]) -> None:
    assert [names.registered(entry.name, None) for entry in registry.entries()] == [
        entry.title for entry in registry.entries()
    ]
