"""The report as a whole: what is written, that it is stable, and what it must not import."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from analysis.cfe.figures.trade_off import frontier
from analysis.report import print_tables, read_numbers, write_report
from geco_ray.errors import StorageError


def shown(ledger: Any, ids: Any = None) -> str:
    console = Console(width=140, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    print_tables(ledger, ids, console)
    return console.export_text()


def test_the_analysis_imports_neither_torch_nor_ray(assert_imports_nothing: Callable[..., str]) -> None:
    ours = "analysis.report, analysis.geco.words_page, analysis.cfe.runtimes, analysis.cfe.figures.families"
    code = f"import {ours}, analysis.geco.statistics.signed_rank, analysis.geco.figures.mass"
    assert_imports_nothing(code, ["torch", "ray", "transformers", "sklearn", "captum", "matplotlib.pyplot"])


@pytest.fixture(scope="module")
def written(full_ledger: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_report(full_ledger, None, tmp_path_factory.mktemp("full"), "full")


def test_a_full_report_is_stable_to_the_byte(full_ledger: Any, written: list[Path], tmp_path: Path) -> None:
    first, second = written, write_report(full_ledger, None, tmp_path, "full")
    assert [path.name for path in first] == [path.name for path in second]
    assert {path.suffix for path in first} >= {".csv", ".md", ".png", ".svg"}
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes(), one.name
    before = {path: path.stat().st_mtime_ns for path in first}
    assert write_report(full_ledger, None, first[0].parent, "full") == first
    assert {path: path.stat().st_mtime_ns for path in first} == before
    assert not list(tmp_path.rglob("*.tmp")) + list(first[0].parent.rglob("*.tmp"))


def test_csv_numbers_are_those_of_the_tables(written: list[Path]) -> None:
    folder = written[0].parent
    table = pd.read_csv(folder / "table_6.csv")
    assert len(table) == 9
    assert table["requests"].tolist() == [100] * 9
    mass = pd.read_csv(folder / "mass_accuracy.csv")
    assert len(mass) == 3 * 10
    assert mass.loc[mass["paradigm"] == "BERT-ZS", "mean_sd"].isna().all()


def test_both_tables_are_printed(full_ledger: Any) -> None:
    text = shown(full_ledger)
    assert "Integrated Gradients" in text
    assert "RobX robust-first" in text
    assert "29/125" in text


def test_an_empty_ledger_says_so(empty_ledger: Any, tmp_path: Path) -> None:
    assert "No result to show yet" in shown(empty_ledger)
    paths = write_report(empty_ledger, None, tmp_path, "empty")
    assert paths
    assert not [path for path in paths if path.suffix in (".png", ".csv")]


def test_one_seed_of_each_benchmark_is_shown_without_a_spread(kit: Any, tmp_path: Path) -> None:
    ledger = kit.FakeLedger()
    kit.fill_geco(ledger, ("demo_binary_all",), ("BERT-C",), ("uniform_random", "saliency"), seeds=1)
    kit.fill_cfe(ledger, ("breast_cancer",), ("kdtree",), ("seed",), (2026,), variants=3, requests=4)
    assert "(n=1)" in shown(ledger)
    names = {path.name for path in write_report(ledger, None, tmp_path, "one")}
    assert {"mass_accuracy_corrected.png", "robustness_distance_paper_paper.svg"} <= names


def test_cells_without_any_value_still_draw(kit: Any, tmp_path: Path) -> None:
    ledger = kit.FakeLedger()
    model = kit.train_cell("binary_gender_all", "BERT-C", 0)
    scored = kit.ScoreCell(kit.ExplainCell(model, "saliency", kit.NoOptions(), None))
    ledger.put(scored, kit.score_table([(None, True, "zero_attribution")]))
    base = kit.BaseCell("diabetes", "0" * 8, 2026, "paper")
    cell = kit.CounterfactualCell(base, "unknown_method", kit.NoOptions(), "paper")
    ledger.put(cell, kit.counterfactual_table(["not_found"], [None]))
    ledger.put(kit.ValidityCell(cell, "seed", ()), kit.validity_table(["not_found"], [None], [[]]))
    names = {path.name for path in write_report(ledger, None, tmp_path, "gaps")}
    assert {"mass_accuracy_corrected.png", "robustness_distance_paper_paper.png"} <= names
    assert "unknown_method" in shown(ledger)


def test_a_folder_that_cannot_be_written_is_named(kit: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="file"):
        write_report(kit.FakeLedger(), None, tmp_path / "file", "x")


def test_frontier_keeps_points_that_raise_the_best() -> None:
    points = [(2.0, 0.9), (1.0, 0.5), (1.5, 0.4), (1.0, 0.6), (3.0, 0.9)]
    assert frontier(points) == [(1.0, 0.6), (2.0, 0.9)]


def test_figures_leave_the_style_of_the_process_alone(kit: Any) -> None:
    import matplotlib as mpl

    ledger = kit.FakeLedger()
    kit.fill_cfe(ledger, ("breast_cancer",), ("kdtree",), ("seed",), (2026,), variants=2, requests=2)
    numbers = read_numbers(ledger)[1]
    with mpl.rc_context({"font.size": 33.0, "svg.hashsalt": "mine"}):
        before = dict(mpl.rcParams)
        odd = numbers.pictures()
        assert dict(mpl.rcParams) == before
    assert [picture.svg for picture in odd] == [picture.svg for picture in numbers.pictures()]


def test_a_ledger_on_disk_with_both_protocols(kit: Any, tmp_path: Path) -> None:
    from geco_ray.ledger import Ledger

    ledger = Ledger(tmp_path / "runs")
    for protocol, value in (("paper", 0.2), ("corrected", 0.6)):
        model = kit.train_cell("demo_binary_all", "OLA-CEA", 0, protocol)
        explained = kit.ExplainCell(model, "lime", kit.NoOptions(), None)
        ledger.put(explained, kit.explain_table([[1] + [0] * 7], [True], np.array([value])))
        ledger.put(kit.ScoreCell(explained), kit.score_table([(value, True, None)]))
    paths = write_report(ledger, None, tmp_path / "report", "both")
    assert {"mass_accuracy_paper.png", "mass_accuracy_corrected.png"} <= {path.name for path in paths}
    text = shown(ledger)
    assert "0.200 (n=1)" in text
    assert "0.600 (n=1)" in text
