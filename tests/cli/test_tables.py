"""What the command line says of tables: values that may stand for missing ones, before anybody trains on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from geco_ray.cli import main

Call = Callable[..., str]
ZEROS = "0 in 9 rows of pressure"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """The words of a command; what it prints. It must succeed."""

    def run(*words: object) -> str:
        with pytest.raises(SystemExit) as ended:
            main([*map(str, words)])
        captured = capsys.readouterr()
        assert ended.value.code == 0, captured.err
        return captured.out + captured.err

    return run


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """A folder with a table in which nine of a hundred pressures are 0."""
    rows = [f"{i * 7 % 83},{0 if i < 9 else 60 + i * 5 % 61},{'yes' if i * 7 % 83 > 40 else 'no'}" for i in range(100)]
    (tmp_path / "clinic.csv").write_text("\n".join(["age,pressure,well", *rows]) + "\n")
    (tmp_path / "clinic.yaml").write_text("name: clinic\ntarget: well\nfavourable: ['yes']\n")
    return tmp_path


def test_an_audit_counts_them(call: Call, clinic: Path) -> None:
    shown = call("data", "audit", "clinic", "demo_binary_all", "--data-dir", clinic)
    for part in ("pressure", "a missing value", "What is in the tables", "What is wrong with them"):
        assert part in shown
    (table,) = json.loads(call("data", "audit", "clinic", "--data-dir", clinic, "--json"))["tables"]
    (remark,) = table["remarks"]
    assert (table["rows"], remark["column"], remark["value"], remark["rows"]) == (100, "pressure", "0", 9)


def test_an_audit_counts_those_of_the_papers_tables(call: Call, data_dir: Path) -> None:
    audits = json.loads(call("data", "audit", "diabetes", "wine_quality", "heloc", "--data-dir", data_dir, "--json"))
    diabetes, wine, heloc = audits["tables"]
    zeros = {"Glucose": 5, "BloodPressure": 35, "SkinThickness": 227, "Insulin": 374, "BMI": 11}
    assert {remark["column"]: remark["rows"] for remark in diabetes["remarks"] if remark["value"] == "0"} == zeros
    assert wine["remarks"] == []
    assert {remark["value"] for remark in heloc["remarks"]} >= {"-9", "-8"}
    assert {remark["used"] for remark in heloc["remarks"]} == {0}
    assert heloc["left_out"] == 10_459 - 8_291


def test_a_card_shows_them_where_its_file_is(call: Call, clinic: Path) -> None:
    assert json.loads(call("data", "card", "clinic", "--data-dir", clinic, "--json"))["worth a look"] == [
        f"clinic: taken as numbers, and may stand for missing values: {ZEROS}."
    ]
    (clinic / "clinic.csv").write_text("age,pressure,well\n1,2\n")
    assert "clinic.csv:2: the row has fewer values" in " ".join(
        call("data", "card", "clinic", "--data-dir", clinic).split()
    )
    (clinic / "clinic.csv").unlink()
    assert "worth a look" not in call("data", "card", "clinic", "--data-dir", clinic)


def test_a_run_says_them_once_and_a_plan_does_not(call: Call, clinic: Path) -> None:
    grid = clinic / "grid.yaml"
    grid.write_text(
        "cfe:\n  datasets: clinic\n  base_seeds: [1]\n  families: [seed]\n  variants: 2\n  methods: [kdtree]\n"
        "  protocol: paper\n  seeding: independent\n"
    )
    words = [grid, "--data-dir", clinic, "--root", clinic / "runs"]
    assert ZEROS not in call("plan", *words)
    shown = call("run", *words, "--executor", "inline")
    assert shown.count(f"warning: clinic: taken as numbers, and may stand for missing values: {ZEROS}.") == 1
